"""Expectations of input and answers, judged before anything is written."""
