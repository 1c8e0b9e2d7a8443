// Package ebnf reads grammars that people write, and adds them to rules.
//
// GBNF is the language of llama.cpp; what W3C's EBNF and xgrammar's have beside it is read as well. Lark is the language of the Python
// package lark.
//
//	GBNF            means
//	name ::= …      a rule; root is the start. It ends where the next rule begins
//	"a" 'a'         text; between double quotes with the escapes \n \r \t \\ \" \[ \] \xHH \uHHHH \UHHHHHHHH
//	[a-z] [^a-z]    one character; #xH… is one by its number, here and outside of brackets (W3C)
//	.               any character
//	a b   a | b     one behind the other, one of them
//	a? a* a+ a{m,n} repetitions, also {m} {m,} {,n}
//	a - b           what a matches and b does not, where neither is recursive (W3C)
//	# …   /* … */   comments
//
//	Lark                    means
//	rule: …   TERMINAL: …   small and large letters; start is the start. Prefixes, aliases and priorities mean nothing here
//	"a" "a"i /a/flags       text, text in any case, a regular expression with the flags i s u
//	"a".."z"                a range of characters
//	a? a* a+ [a] a~m a~m..n repetitions
//	%import common.NAME     terminals of lark's library
//	%ignore …               text that may stand between terminals
//	// …   # …              comments
//
// A text belongs to a grammar where some way of cutting it into terminals does. Lark would only look at the longest ones, so a few texts that
// it refuses pass here: "if" NAME also matches "ifx". What else a grammar asks and cannot be held is refused with its line.
//
// Reading takes time and memory that are linear in the text. Recursion of every kind is allowed.
package ebnf

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error says where a grammar is wrong, or asks for what cannot be held.
type Error struct {
	Line, Column int    // from 1; columns count characters
	Reason       string // what is wrong there
}

// Error begins with the line and the column.
func (e *Error) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

// Bounds of grammars, whose texts come with requests.
const (
	deepest   = 200       // nesting of brackets and repetitions
	mostTimes = 1_000_000 // of a repetition
	mostNodes = 1 << 15   // of an expression without recursion that becomes one terminal
)

// place is where an offset of a text is.
func place(text string, offset int) (line, column int) {
	before := text[:offset]
	start := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[start:]) + 1
}
