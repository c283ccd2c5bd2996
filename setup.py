"""Lets setuptools build the editable install; everything it says is in setup.cfg."""
from setuptools import setup

setup()
