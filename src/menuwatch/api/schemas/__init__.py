"""What comes in and goes out, as Pydantic models: nothing outside `api` knows them.

Requests are validated by them. Answers are described by them and encoded from operations' rows (answers.py); a test holds the
answers to the description.
"""
