"""What the lessons reply to guesses that are known misconceptions, a module for each lesson: `reveal(guess.one_row, x.grad,
replies=replies.one_row)` after `from gradlab.homework.replies import lesson_5 as replies`.

They stand here, for in the cell below a question they would answer it by what they leave out.
"""
