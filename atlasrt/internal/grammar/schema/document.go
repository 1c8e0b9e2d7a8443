package schema

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/jsontree"
)

// document is the text of a schema: what its identifiers name.
type document struct {
	root      place
	resources map[string]*resource           // by URI without fragment
	within    map[*jsontree.Object]*resource // schemas that have an identifier
	dynamic   map[string]int                 // how many schemas have a dynamic anchor
}

// resource is a schema with an identifier, or the whole document.
type resource struct {
	uri     *url.URL
	draft   draft
	root    place
	anchors map[string]place
}

// draft is an edition of JSON Schema: 4, 6, 7, 2019 or 2020.
type draft int

// alone says that a $ref's siblings are ignored.
func (d draft) alone() bool { return d <= 7 }

func draftOf(uri string) (draft, bool) {
	for _, d := range []struct {
		mark  string
		draft draft
	}{{"draft-03", 4}, {"draft-04", 4}, {"draft-06", 6}, {"draft-07", 7}, {"2019-09", 2019}, {"2020-12", 2020}} {
		if strings.Contains(uri, d.mark) {
			return d.draft, true
		}
	}
	return 2020, false
}

// place is a schema where it stands.
type place struct {
	schema   jsontree.Value
	resource *resource
	path     *path
}

// path is a JSON pointer.
type path struct {
	parent *path
	name   string
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// String is the path behind #.
func (p *path) String() string {
	var names []string
	for ; p != nil && p.parent != nil; p = p.parent {
		names = append(names, pointerEscapes.Replace(p.name))
	}
	var b strings.Builder
	b.WriteByte('#')
	for i := len(names) - 1; i >= 0; i-- {
		b.WriteString("/" + names[i])
	}
	return b.String()
}

// at is what stands below a place. Names lead there from the place.
func (d *document) at(p place, v jsontree.Value, names ...string) place {
	for _, name := range names {
		p.path = &path{parent: p.path, name: name}
	}
	p.schema = v
	if o, ok := v.(*jsontree.Object); ok && d.within[o] != nil {
		p.resource = d.within[o]
	}
	return p
}

// open finds what has an identifier.
func (d *document) open(root jsontree.Value) {
	d.resources, d.within, d.dynamic = map[string]*resource{}, map[*jsontree.Object]*resource{}, map[string]int{}
	whole := &resource{uri: &url.URL{}, draft: 2020, anchors: map[string]place{}}
	if o, ok := root.(*jsontree.Object); ok {
		if uri, ok := text(o, "$schema"); ok {
			whole.draft, _ = draftOf(uri)
		}
	}
	d.root = place{schema: root, resource: whole, path: &path{}}
	whole.root = d.root
	d.resources[""] = whole
	d.visit(d.root)
}

func text(o *jsontree.Object, key string) (string, bool) {
	v, _ := o.Get(key)
	s, ok := v.(jsontree.String)
	return string(s), ok
}

// Keywords that hold schemas.
var (
	schemaKeywords = strings.Fields("additionalItems additionalProperties contains contentSchema else if items not propertyNames then unevaluatedItems unevaluatedProperties")
	listKeywords   = strings.Fields("allOf anyOf items oneOf prefixItems")
	mapKeywords    = strings.Fields("$defs definitions dependencies dependentSchemas patternProperties properties")
)

func (d *document) visit(p place) {
	o, ok := p.schema.(*jsontree.Object)
	if !ok {
		return
	}
	p = d.identify(p, o)
	for _, k := range schemaKeywords {
		if v, ok := o.Get(k); ok {
			d.visit(d.at(p, v, k))
		}
	}
	for _, k := range listKeywords {
		v, _ := o.Get(k)
		list, _ := v.(jsontree.Array)
		for i, v := range list {
			d.visit(d.at(p, v, k, strconv.Itoa(i)))
		}
	}
	for _, k := range mapKeywords {
		v, _ := o.Get(k)
		schemas, _ := v.(*jsontree.Object)
		for name, v := range schemas.All() {
			d.visit(d.at(p, v, k, name))
		}
	}
}

// identify notes the identifiers of a schema. The result is the place within the resource that it may begin.
func (d *document) identify(p place, o *jsontree.Object) place {
	draft := p.resource.draft
	if uri, ok := text(o, "$schema"); ok {
		if known, ok := draftOf(uri); ok {
			draft = known
		}
	}
	if _, refers := o.Get("$ref"); refers && draft.alone() {
		return p
	}
	key := "$id"
	if draft == 4 {
		key = "id"
	}
	if id, ok := text(o, key); ok {
		if name, isAnchor := strings.CutPrefix(id, "#"); isAnchor && name != "" {
			p.resource.anchors[name] = p
		} else if uri, err := p.resource.uri.Parse(id); err == nil {
			uri.Fragment = ""
			r := &resource{uri: uri, draft: draft, anchors: map[string]place{}}
			p.resource = r
			r.root = p
			if d.resources[uri.String()] == nil {
				d.resources[uri.String()] = r
			}
			d.within[o] = r
			if p.path.parent == nil {
				d.root = p
				d.resources[""] = r
			}
		}
	}
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if name, ok := text(o, key); ok {
			p.resource.anchors[name] = p
			if key == "$dynamicAnchor" {
				d.dynamic[name]++
			}
		}
	}
	return p
}

// find is the place that a reference names. The reason says why there is none.
func (d *document) find(from place, reference string) (to place, reason string) {
	uri, err := from.resource.uri.Parse(reference)
	if err != nil {
		return place{}, "it is no URI reference"
	}
	fragment := uri.Fragment
	uri.Fragment, uri.RawFragment = "", ""
	r := d.resources[uri.String()]
	if strings.HasPrefix(reference, "#") {
		r = from.resource
	}
	switch {
	case r == nil:
		return place{}, "it refers to " + strconv.Quote(uri.String()) + ", which is not in this document; nothing is fetched: put that schema under $defs"
	case fragment == "":
		return r.root, ""
	case !strings.HasPrefix(fragment, "/"):
		if p, ok := r.anchors[fragment]; ok {
			return p, ""
		}
		return place{}, "there is no anchor " + strconv.Quote(fragment)
	}
	to = r.root
	for _, name := range strings.Split(fragment[1:], "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		var v jsontree.Value
		switch parent := to.schema.(type) {
		case *jsontree.Object:
			v, _ = parent.Get(name)
		case jsontree.Array:
			if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(parent) {
				v = parent[i]
			}
		}
		if v == nil {
			return place{}, "nothing stands at " + strconv.Quote("#"+fragment)
		}
		to = d.at(to, v, name)
	}
	return to, ""
}
