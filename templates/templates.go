// Package templates holds the templates that the compiler writes code with. They hold no logic but range and if.
package templates

import "embed"

// Files are the templates, by name.
//
//go:embed *.tmpl
var Files embed.FS
