// Package version says which version of the module a program was built from.
package version

import (
	"cmp"
	"runtime/debug"
)

// commitDigits are enough of a commit's name to find it.
const commitDigits = 12

// Of is the version that the Go toolchain recorded: a release's, or that of a commit; "devel" where it recorded neither. info may be nil.
func Of(info *debug.BuildInfo) string {
	if info == nil {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = "-" + s.Value[:min(commitDigits, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+dirty"
		}
	}
	if commit == "" {
		return "devel"
	}
	return "devel" + commit + changed
}

// Program is what a program answers to --version.
func Program(name string, info *debug.BuildInfo) string {
	text := name + " " + Of(info)
	if info == nil {
		return text
	}
	platform := map[string]string{}
	for _, s := range info.Settings {
		platform[s.Key] = s.Value
	}
	return text + " (" + cmp.Or(info.GoVersion, "unknown Go") + " " + platform["GOOS"] + "/" + platform["GOARCH"] + ")"
}
