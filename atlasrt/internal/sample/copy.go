package sample

import "slices"

// LookBack tells whether the edits follow from tokens that came long before: they have a window, or penalise repetitions of several tokens.
func (e *Edits) LookBack() bool { return e != nil && e.looks }

// Copy makes to a copy of the edits, which may go on with other tokens. What to held before is lost; its memory is used again. Edits that look
// back are not copied.
func (e *Edits) Copy(to *Edits) {
	at, closing, from := to.at, to.closing, e.Entries
	if clear(at); at == nil {
		at = make(map[int32]int, from.Len())
	}
	for i, token := range from.Token {
		at[token] = i
	}
	*to = Edits{
		Entries: Entries{append(to.Token[:0], from.Token...), append(to.Bias[:0], from.Bias...), append(to.Factor[:0], from.Factor...), append(to.Offset[:0], from.Offset...)},
		params:  e.params, at: at, causes: append(to.causes[:0], e.causes...), held: append(to.held[:0], e.held...), changes: e.changes,
	}
	if e.closing != nil {
		if closing == nil {
			closing = newClosing(e.closing.Budget)
		}
		only := closing.only
		*closing = *e.closing
		closing.only = only
		to.closing = closing
	}
}

// Keep appends entries to those of to, and returns where they are there. They do not change with the edits any more.
func (e Entries) Keep(to *Entries) Entries {
	from, end := to.Len(), to.Len()+e.Len()
	*to = Entries{append(to.Token, e.Token...), append(to.Bias, e.Bias...), append(to.Factor, e.Factor...), append(to.Offset, e.Offset...)}
	return Entries{slices.Clip(to.Token[from:end]), slices.Clip(to.Bias[from:end]), slices.Clip(to.Factor[from:end]), slices.Clip(to.Offset[from:end])}
}
