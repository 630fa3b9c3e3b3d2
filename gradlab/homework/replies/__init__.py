"""Replies of the lessons to common misconceptions, a module for each lesson.

After `from gradlab.homework.replies import lesson_5 as replies`: `reveal(guess.one_row, x.grad, replies=replies.one_row)`. The
replies are not in the lessons, because a cell below a question would give its answer away.
"""
