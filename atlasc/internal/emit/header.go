package emit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/contract"
)

// Header writes the C header of the contract.
func Header(c *contract.Contract) ([]byte, error) {
	type enum struct {
		Name      string
		Constants []contract.Constant
	}
	type field struct {
		Name, Declaration, Comment string
		Offset                     int64
	}
	type structure struct {
		Name   string
		Size   int64
		Fields []field
	}
	var data struct {
		Enums   []enum
		Structs []structure
	}
	for _, k := range c.Constants {
		i := slices.IndexFunc(data.Enums, func(e enum) bool { return e.Name == k.Type })
		if i < 0 {
			i = len(data.Enums)
			data.Enums = append(data.Enums, enum{Name: k.Type})
		}
		data.Enums[i].Constants = append(data.Enums[i].Constants, k)
	}
	for _, s := range append([]*contract.Struct{c.Weight}, c.Ops...) {
		out := structure{Name: s.Name, Size: s.Size}
		paddings, widest := 0, 0
		for _, f := range s.Fields {
			name := f.Name
			if f.Kind == contract.Padding {
				name = "pad_"
				if paddings++; paddings > 1 {
					name = fmt.Sprintf("pad%d_", paddings)
				}
			}
			declaration := cType(s, c.Weight, f)
			if !strings.HasSuffix(declaration, "*") {
				declaration += " "
			}
			declaration += name + ";"
			widest = max(widest, len(declaration))
			out.Fields = append(out.Fields, field{name, declaration, comment(f), f.Offset})
		}
		for i := range out.Fields {
			if f := &out.Fields[i]; f.Comment != "" {
				f.Declaration += strings.Repeat(" ", widest-len(f.Declaration))
			}
		}
		data.Structs = append(data.Structs, out)
	}
	return execute("atlas_op.h.tmpl", data)
}

// cElements are the C types of the tag grammar's element types. On its own bf16 is bits: only CUDA has a type for it.
var cElements = map[string]string{
	"f32": "float", "bf16": "uint16_t", "i32": "int32_t", "i64": "int64_t", "u32": "uint32_t", "u8": "uint8_t", "act": "atlas_act",
}

func cType(s, weight *contract.Struct, f contract.Field) string {
	switch {
	case f.Kind == contract.WeightField:
		return "atlas_Weight"
	case f.Kind == contract.Enum:
		return "atlas_" + f.Type
	case f.Kind == contract.Pointer && s == weight && f.Name == "Scale":
		return "float *"
	case f.Kind == contract.Pointer && s == weight:
		return "uint8_t *"
	case f.Kind == contract.Pointer:
		elem, ok := cElements[f.Elem]
		if !ok {
			elem = "void" // a DType field tells at run time
		}
		if f.Role == contract.In {
			elem = "const " + elem
		}
		return elem + " *"
	case f.Type == "float32":
		return "float"
	}
	return f.Type + "_t"
}

// comment says what a kernel author must know of a pointer: role, shape, and whether it may be null.
func comment(f contract.Field) string {
	if f.Role == "" {
		return ""
	}
	words := string(f.Role)
	if f.Kind == contract.Pointer {
		dims := make([]string, len(f.Dims))
		for i, d := range f.Dims {
			dims[i] = d.Size
			if d.Pitch != "" {
				dims[i] += ":" + d.Pitch
			}
		}
		words = fmt.Sprintf("%-5s [%s]", f.Role, strings.Join(dims, ","))
		if _, ok := cElements[f.Elem]; !ok {
			words += " of " + f.Elem
		}
	}
	if f.Optional {
		words += ", may be null"
	}
	return words
}
