// Package hub finds a model by the name a user gives: a path, or `owner/name` in the HuggingFace cache or on its hub.
//
// Invariants: the cache keeps huggingface_hub's layout (models--owner--name/{blobs,refs,snapshots}), so that both share
// files. What is complete in the cache is used without asking the network. A file appears in a snapshot only after its
// size and hash were verified; until then it is a .part file, which a later run continues. Nothing outside the model's own
// folder is read or written, whatever names or links the hub or the cache hold. The token is sent to the hub's own host
// alone. Two processes that want the same model wait for each other. Nothing here reads the environment.
package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
)

// DefaultEndpoint is the public hub.
const DefaultEndpoint = "https://huggingface.co"

// Options says where to look.
type Options struct {
	// CacheDir holds the models--owner--name folders: HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub.
	CacheDir string
	Endpoint string         // the hub; empty: DefaultEndpoint
	Token    string         // a read token, or empty
	Offline  bool           // never ask the hub: what the cache lacks is an error, and the cache stays as it is
	Progress func(Progress) // called during downloads, one call at a time; may be nil
	// Transport makes the connections; nil: http.DefaultTransport.
	Transport http.RoundTripper
}

// Progress is how far the download of one file is.
type Progress struct {
	Model       string // owner/name
	File        string // its name in the repository
	Done, Total int64  // bytes; Total is -1 when the hub does not say
}

// Resolve gives the path of a model: a folder with config.json and safetensors files, or a .gguf file. model is an existing
// path, or `owner/name`, `owner/name@revision`, `owner/name:file.gguf`, which is downloaded unless the cache has it. Of a
// GGUF model in parts the first is named, and all are fetched.
func Resolve(ctx context.Context, model string, options Options) (string, error) {
	if _, err := os.Lstat(model); err == nil { // a link to nothing, too: opening it says so
		return model, nil
	}
	want, err := parseReference(model)
	if err != nil {
		return "", err
	}
	if options.CacheDir == "" {
		return "", fmt.Errorf("model %s: no cache folder is set", model)
	}
	path, err := resolve(ctx, want, options, patience{pause: time.Second, stall: time.Minute})
	if err != nil {
		return "", fmt.Errorf("model %s: %w", model, err)
	}
	return path, nil
}

func resolve(ctx context.Context, want reference, options Options, patience patience) (string, error) {
	if options.Endpoint == "" {
		options.Endpoint = DefaultEndpoint
	}
	endpoint, err := url.Parse(strings.TrimSuffix(options.Endpoint, "/"))
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "https" && endpoint.Scheme != "http" {
		return "", fmt.Errorf("%q is no address of a hub", options.Endpoint)
	}
	if options.Transport == nil {
		options.Transport = http.DefaultTransport
	}
	if options.Offline {
		if _, err := os.Stat(filepath.Join(options.CacheDir, want.folder())); err != nil {
			return "", fmt.Errorf("it is not in the cache: %w", err)
		}
	}
	cache, err := openCache(options.CacheDir, want)
	if err != nil {
		return "", err
	}
	defer cache.close()
	if path, err := cache.find(); path != "" || err != nil {
		return path, err
	}
	if options.Offline {
		return "", fmt.Errorf("it is not whole in the cache %s", cache.path)
	}
	unlock, err := lock(ctx, filepath.Join(options.CacheDir, ".locks", want.folder(), "atlas.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	// Whoever held the lock before may have fetched the model.
	if path, err := cache.find(); path != "" || err != nil {
		return path, err
	}
	d := &download{
		want: want, cache: cache, progress: options.Progress, patience: patience,
		remote: &remote{endpoint: endpoint, token: options.Token, transport: options.Transport},
	}
	if err := d.run(ctx); err != nil {
		os.Remove(cache.path) // which succeeds only where nothing was put: no trace of a wrong name
		return "", err
	}
	path, err := cache.find()
	if err == nil && path == "" {
		err = errors.New("the download is complete, but the cache does not hold it: was it removed meanwhile?")
	}
	return path, err
}

// lock waits for the lock file, or for the end of the context.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	type result struct {
		unlock func()
		err    error
	}
	// Waiting for a file lock cannot be interrupted: the goroutine ends when it gets the lock, which nobody may want by then.
	locked := make(chan result)
	go func() {
		unlock, err := lockedfile.MutexAt(path).Lock()
		select {
		case locked <- result{unlock, err}:
		case <-ctx.Done():
			if err == nil {
				unlock()
			}
		}
	}()
	select {
	case r := <-locked:
		return r.unlock, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for another process that downloads this model: %w", ctx.Err())
	}
}

// reference is a parsed model name.
type reference struct {
	owner, name string
	revision    string // a branch, a tag or a commit
	file        string // a .gguf file, the first of its parts; empty: the safetensors checkpoint
}

// files lists what belongs to the wanted .gguf file: itself, or all parts.
func (r reference) files() []string {
	if part, ok := gguf.ParsePartName(r.file); ok {
		return part.All()
	}
	return []string{r.file}
}

var (
	ownerForm    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$`)
	revisionForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$`)
)

func parseReference(model string) (reference, error) {
	r := reference{revision: "main"}
	rest := model
	if before, file, ok := strings.Cut(rest, ":"); ok {
		rest, r.file = before, file
		if !localName(file) || !strings.EqualFold(path.Ext(file), ".gguf") {
			return r, fmt.Errorf("model %q: after the colon stands the name of a .gguf file", model)
		}
		if part, ok := gguf.ParsePartName(file); ok && part.Part != 1 {
			return r, fmt.Errorf("model %q: %s is part %d of %d (give the first, %s)", model, file, part.Part, part.Parts, part.Of(1))
		}
	}
	if before, revision, ok := strings.Cut(rest, "@"); ok {
		rest, r.revision = before, revision
	}
	var slash bool
	r.owner, r.name, slash = strings.Cut(rest, "/")
	names := r.owner + "/" + r.name
	if !slash || !ownerForm.MatchString(r.owner) || !ownerForm.MatchString(r.name) || strings.Contains(names, "..") || strings.Contains(names, "--") {
		return r, fmt.Errorf("model %q is neither an existing folder or file nor a name like owner/name, owner/name@revision, owner/name:file.gguf", model)
	}
	if !revisionForm.MatchString(r.revision) || !filepath.IsLocal(r.revision) || strings.Contains(r.revision, "..") || strings.Contains(r.revision, "//") {
		return r, fmt.Errorf("model %q: %q is no revision", model, r.revision)
	}
	return r, nil
}

func (r reference) String() string { return r.owner + "/" + r.name }

// folder is the model's folder in the cache.
func (r reference) folder() string { return "models--" + r.owner + "--" + r.name }

// localName says whether a file below a model's folder may be called so: few plain names.
func localName(name string) bool {
	elements := strings.Split(name, "/")
	return len(elements) <= 4 && !slices.ContainsFunc(elements, func(element string) bool { return !plainName(element) })
}

// plainName says whether a file may be called so: one path element, no control characters.
func plainName(name string) bool {
	return name != "" && len(name) <= 255 && !strings.HasPrefix(name, ".") && !strings.ContainsAny(name, "/\\") &&
		!strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd })
}
