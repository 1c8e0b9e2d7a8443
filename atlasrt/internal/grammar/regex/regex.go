// Package regex has regular expressions over bytes that are matched by derivatives (Brzozowski 1964): the derivative of an expression by a byte
// matches what may follow that byte. So intersection and complement cost no more than union, counts are numbers and not copies, and states are
// made only where a text leads.
//
// Expressions are interned in a Set: those that are built alike, or equal by the simple laws, are one Ref. Text is UTF-8.
package regex

// Ref is an expression of a Set.
type Ref int32

// Expressions that every Set has.
const (
	Nothing Ref = iota // matches no text
	Empty              // matches the empty text alone
)
