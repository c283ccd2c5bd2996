"""Families: query groups that read streams in common as one work: which they are, and how tasks divide their work.

Pure; statements are text.
"""
