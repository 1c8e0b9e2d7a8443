package grammar

import "fmt"

// Error says why a Spec is refused: it is wrong, or asks for what cannot be held.
type Error struct {
	Kind Kind   // of the part that is refused
	Name string // of that part, or of the nearest one around it that has a name; "": none has
	Err  error  // why: *schema.Invalid, *schema.Unsupported, *schema.Unsatisfiable, *regex.Error, *ebnf.Error, *TooLarge, or another
}

// Error begins with the name of the part.
func (e *Error) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s: %v", e.Kind, e.Err)
	}
	return fmt.Sprintf("%s (%s): %v", e.Name, e.Kind, e.Err)
}

// Unwrap is why.
func (e *Error) Unwrap() error { return e.Err }

// TooLarge says that a Spec takes more than its limits grant.
type TooLarge struct {
	What  string // that there is too much of
	Limit int    // how much there may be
}

// Error says what to make smaller.
func (e *TooLarge) Error() string {
	return fmt.Sprintf("takes more than %d %s (make it smaller)", e.Limit, e.What)
}

// Fault is a mistake of this program that a Spec met. It costs that request alone.
type Fault struct {
	Kind  Kind   // of the part that was read
	Value any    // what the program panicked with
	Stack []byte // where, for the log
}

// Error says no more than a client may know.
func (e *Fault) Error() string {
	return fmt.Sprintf("%s: an internal error while it was compiled", e.Kind)
}
