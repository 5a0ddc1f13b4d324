"""The length of the longest text of a grammar without repetition, worked out from what Lark makes of it."""

from lark import Lark
from lark.lexer import PatternStr, TerminalDef


def longest_text(parser: Lark) -> int:
    """No text has more bytes: the sum over each rule's longest alternative. Recursion would never end."""
    widths = {terminal.name: widest_lexeme(terminal) for terminal in parser.terminals}

    def widest(symbol: str) -> int:
        if symbol in widths:
            return widths[symbol]
        alternatives = (rule.expansion for rule in parser.rules if rule.origin.name == symbol)
        return max(sum(widest(part.name) for part in parts) for parts in alternatives)

    return widest("start")


def widest_lexeme(terminal: TerminalDef) -> int:
    """In bytes. Lark knows how many characters it can have; those of a negated class have up to four each."""
    pattern = terminal.pattern
    if isinstance(pattern, PatternStr):
        return len(pattern.value.encode())
    return pattern.max_width * (4 if "[^" in pattern.value else 1)
