"""Questions about a program that passes, checkers and reports ask. Changes nothing."""
