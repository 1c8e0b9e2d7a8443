package plan

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/atlas-inference/atlas/atlasc/internal/diag"
	"github.com/atlas-inference/atlas/atlasc/internal/manifest"
	"github.com/atlas-inference/atlas/targets"
)

// Kernels is the folder of manifests and kernel bodies.
const Kernels = "kernels"

// find reads the manifests and gives each to its hardware, where the hardware's name matches the pattern only.
func (m *maker) find(hardware []*targets.Hardware, only string) ([]*Hardware, error) {
	names, err := fs.Glob(m.tree, Kernels+"/*/*/*/kernels.toml")
	if err != nil {
		return nil, fmt.Errorf("list manifests: %w", err)
	}
	slices.Sort(names)
	known := make([]string, len(hardware))
	for i, h := range hardware {
		known[i] = h.Name
	}
	var found []*Hardware
	for _, name := range names {
		parts := strings.Split(name, "/")
		if matches, err := path.Match(only, parts[1]); err != nil {
			return nil, fmt.Errorf("pattern %q: %w", only, err)
		} else if !matches || parts[1] == "lib" {
			continue
		}
		i := slices.Index(known, parts[1])
		if i < 0 {
			m.diags.Add(diag.Pos{File: name, Line: 1}, diag.Suggest(parts[1], known), "there is no hardware %q in targets/hardware", parts[1])
			continue
		}
		read := m.read(name, manifest.Parameters{})
		if read == nil {
			continue
		}
		if len(found) == 0 || found[len(found)-1].Name != parts[1] {
			found = append(found, &Hardware{Hardware: hardware[i]})
		}
		h := found[len(found)-1]
		h.Targets = append(h.Targets, Target{Model: parts[2], Quant: parts[3], Manifest: read})
	}
	return found, nil
}

// maxSets is how many sets of parameters one manifest may be read with: chains of includes could make any number.
const maxSets = 64

// read reads a manifest once for each set of parameters that it makes a difference to.
func (m *maker) read(name string, given manifest.Parameters) *manifest.Manifest {
	known := m.manifests[name]
	if i := slices.IndexFunc(known, func(read *manifest.Manifest) bool { return read.Fits(given) }); i >= 0 {
		return known[i]
	}
	if len(known) == maxSets {
		m.diags.Add(diag.Pos{File: name}, "", "manifest is included with more than %d sets of parameters", maxSets)
		return nil
	}
	if !plainPath.MatchString(name) {
		m.diags.Add(diag.Pos{File: fmt.Sprintf("%q", name)}, "use letters, digits, dots, dashes and underscores", "file name with odd characters")
		return nil
	}
	text, err := fs.ReadFile(m.tree, name)
	if err != nil {
		m.diags.Add(diag.Pos{File: name}, "", "cannot read it: %v", err)
		return nil
	}
	before := len(m.diags)
	read := manifest.Read(name, string(text), given, &m.diags)
	m.manifests[name] = append(known, read)
	m.malformed[read] = len(m.diags) > before
	return read
}

// visit is a manifest that a target consists of, and the scheme that its entries serve: its own, else that of the
// manifest that includes it.
type visit struct {
	manifest *manifest.Manifest
	scheme   string
}

// visits lists a target's manifest and those it includes, in the order of their entries.
func (m *maker) visits(t Target) []visit {
	if s := t.Manifest.Scheme; s != "" && s != t.Quant {
		m.diags.Add(t.Manifest.At("scheme"), "move the file or change the scheme", "scheme %q in folder %q", s, t.Quant)
	}
	var all []visit
	seen := map[*manifest.Manifest]bool{}
	var follow func(read *manifest.Manifest, scheme string, chain []string)
	others := func(read *manifest.Manifest, key string, files []string, scheme string, chain []string) (found []*manifest.Manifest) {
		for _, include := range files {
			name := path.Join(path.Dir(read.Path), include)
			switch {
			case slices.Contains(chain, name):
				m.diags.Add(read.At(key), "remove one include", "manifests include each other: %s", strings.Join(append(chain, name), " → "))
			case !strings.HasPrefix(name, Kernels+"/") || !fs.ValidPath(name):
				m.diags.Add(read.At(key), "include files under kernels/", "include %q leads out of kernels", include)
			default:
				if _, err := fs.Stat(m.tree, name); errors.Is(err, fs.ErrNotExist) {
					m.diags.Add(read.At(key), "paths are relative to the manifest", "include %q: there is no file %s", include, name)
				} else if included := m.read(name, read.Parameters()); included != nil {
					found = append(found, included)
					follow(included, scheme, slices.Clone(chain))
				}
			}
		}
		return found
	}
	follow = func(read *manifest.Manifest, scheme string, chain []string) {
		if read.Scheme != "" {
			scheme = read.Scheme
		}
		if seen[read] {
			return
		}
		seen[read] = true
		if m.malformed[read] && len(read.Set) > 0 {
			all = append(all, visit{read, scheme})
			return // what the parameters are may be unknown
		}
		chain = append(chain, read.Path)
		included := others(read, "before", read.Before, scheme, chain)
		all = append(all, visit{read, scheme})
		included = append(included, others(read, "include", read.Include, scheme, chain)...)
		if len(included) == len(read.Before)+len(read.Include) {
			m.unused(read, included)
		}
	}
	follow(t.Manifest, "", nil)
	return all
}

// unused reports parameters that a manifest sets for nothing.
func (m *maker) unused(read *manifest.Manifest, included []*manifest.Manifest) {
	if slices.ContainsFunc(included, func(i *manifest.Manifest) bool { return m.malformed[i] }) {
		return // correcting a text may be using one
	}
	for name := range read.Set {
		if !read.UsesOwn(name) && !slices.ContainsFunc(included, func(i *manifest.Manifest) bool { return i.Uses(name) }) {
			m.diags.Add(read.At("set."+name), "remove it", "parameter %s is used neither here nor by a manifest that this one includes", name)
		}
	}
}
