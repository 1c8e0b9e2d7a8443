// Package tensor describes a stored tensor: a name, an element type, a shape and its bytes.
//
// Invariants: shapes are row-major with the slowest dimension first, whatever order the file has. Data holds exactly Type.Bytes(Shape)
// bytes, little endian, and is read only. Of values, only F16 and BF16 are converted here.
package tensor

import (
	"fmt"
	"strings"
)

// Info is what is known of a tensor before its bytes are read.
type Info struct {
	Name   string  // by HuggingFace's names, also in GGUF files
	Stored string  // the file's name of the tensor that it is, or is a part of; empty where that is Name
	Type   Type    // of its elements or blocks
	Shape  []int64 // the slowest dimension first; empty for a scalar
}

// Tensor is a stored tensor.
type Tensor struct {
	Info
	Data []byte // may lie in a file mapping: read it through mapping.Copy or mapping.Guard
}

// Elements is the product of the dimensions; 1 for a scalar.
func (i Info) Elements() int64 {
	n := int64(1)
	for _, d := range i.Shape {
		n *= d
	}
	return n
}

// Rows and Cols see the tensor as a matrix: Cols is the last dimension, Rows the product of the others.
func (i Info) Rows() int64 {
	if len(i.Shape) == 0 {
		return 1
	}
	return Info{Shape: i.Shape[:len(i.Shape)-1]}.Elements()
}

// Cols is the last dimension; 1 for a scalar.
func (i Info) Cols() int64 {
	if len(i.Shape) == 0 {
		return 1
	}
	return i.Shape[len(i.Shape)-1]
}

// String reads like `model.norm.weight BF16 [96]`.
func (i Info) String() string {
	return i.Title() + " " + i.Type.String() + " " + FormatShape(i.Shape)
}

// Title is the name, and the file's where that is another.
func (i Info) Title() string {
	if i.Stored == "" {
		return i.Name
	}
	return i.Name + " (in the file: " + i.Stored + ")"
}

// FormatShape writes a shape as `[96, 64]`.
func FormatShape(shape []int64) string {
	return strings.Join(strings.Fields(fmt.Sprint(shape)), ", ")
}
