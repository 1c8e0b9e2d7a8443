package hub

import (
	"cmp"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/atlas-inference/atlas/atlasrt/internal/weights"
	"github.com/atlas-inference/atlas/atlasrt/internal/weights/gguf"
)

var (
	snapshotPath = regexp.MustCompile(`/models--([^/]+)/snapshots/[^/]+$`)
	blobName     = regexp.MustCompile(`^sha256[-:]([0-9a-f]{64})$`)
)

// Name is what a model is called that a user names for Resolve. A folder has its own name, dots and all, and in the HuggingFace cache
// that of its repository; a file of a checkpoint has its folder's. A GGUF file's is without .gguf and without its number among parts,
// and a blob of ollama's has the name that ollama knows it by. Links keep their own names. `owner/name` is one already.
func Name(model string) string {
	info, err := os.Stat(model)
	if err != nil {
		if want, err := parseReference(model); err == nil && want.file != "" {
			return fileName(path.Base(want.file))
		}
		return model
	}
	place, err := filepath.Abs(model)
	if err != nil { // there is no working folder any more
		place = filepath.Clean(model)
	}
	if !info.IsDir() && weights.OfFolder(filepath.Base(place)) {
		return Name(filepath.Dir(place))
	}
	if info.IsDir() {
		if found := snapshotPath.FindStringSubmatch(filepath.ToSlash(place)); found != nil {
			return strings.Replace(found[1], "--", "/", 1)
		}
		return filepath.Base(place)
	}
	if blob := blobName.FindStringSubmatch(filepath.Base(place)); blob != nil {
		if name := ollamaName(os.DirFS(filepath.Join(filepath.Dir(place), "..", "manifests")), "sha256:"+blob[1]); name != "" {
			return name
		}
	}
	return fileName(filepath.Base(place))
}

// fileName is the name of a GGUF file's model.
func fileName(base string) string {
	if end := len(base) - len(".gguf"); end > 0 && strings.EqualFold(base[end:], ".gguf") {
		base = base[:end]
	}
	if part, ok := gguf.ParsePartName(base); ok {
		return cmp.Or(part.Stem, base)
	}
	return base
}

// Bounds of what is read of ollama's manifests.
const (
	mostManifests     = 4096
	mostManifestBytes = 1 << 20
)

// ollamaName finds the first of ollama's manifests, HOST/OWNER/MODEL/TAG, with a layer of the digest; "" where there is none. Ollama leaves
// its own host and owner out of a name.
func ollamaName(manifests fs.FS, digest string) (name string) {
	left := mostManifests
	// What cannot be read names nothing: the file's own name is a name as well.
	_ = fs.WalkDir(manifests, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil
		}
		parts := strings.Split(path, "/")
		if left--; left < 0 {
			return fs.SkipAll
		}
		if len(parts) == 4 && hasLayer(manifests, path, digest) {
			name = strings.TrimPrefix(strings.TrimPrefix(strings.Join(parts[:3], "/"), "registry.ollama.ai/"), "library/") + ":" + parts[3]
			return fs.SkipAll
		}
		return nil
	})
	return name
}

// hasLayer reports whether a manifest lists a digest.
func hasLayer(manifests fs.FS, path, digest string) bool {
	f, err := manifests.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var manifest struct {
		Layers []struct {
			Digest string `json:"digest"`
		} `json:"layers"`
	}
	if err := json.NewDecoder(io.LimitReader(f, mostManifestBytes)).Decode(&manifest); err != nil {
		return false
	}
	for _, layer := range manifest.Layers {
		if layer.Digest == digest {
			return true
		}
	}
	return false
}
