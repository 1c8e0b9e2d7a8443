package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

const (
	maxListBytes = 64 << 20
	maxRedirects = 5
)

// remote speaks to a hub.
type remote struct {
	endpoint  *url.URL
	token     string
	transport http.RoundTripper
}

// listing is a revision's commit and the sizes of its files.
type listing struct {
	commit string
	sizes  map[string]int64 // -1: the hub does not say
}

// list asks for the files of a revision.
func (r *remote) list(ctx context.Context, want reference) (listing, error) {
	address := r.endpoint.JoinPath("api", "models", want.owner, want.name, "revision", url.PathEscape(want.revision))
	address.RawQuery = "blobs=true"
	answer, err := r.send(ctx, http.MethodGet, address, nil)
	if err != nil {
		return listing{}, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxListBytes+1))
	if err != nil {
		return listing{}, temporary{fmt.Errorf("%s: the list of files: %w", address.Host, err)}
	}
	if len(text) > maxListBytes {
		return listing{}, fmt.Errorf("%s: the list of files is larger than %d bytes", address.Host, maxListBytes)
	}
	var raw struct {
		Commit string `json:"sha"`
		Files  []struct {
			Name string `json:"rfilename"`
			Size *int64 `json:"size"`
		} `json:"siblings"`
	}
	if err := json.Unmarshal(text, &raw); err != nil {
		return listing{}, fmt.Errorf("%s: %w: is this a HuggingFace hub?", address.Host, err)
	}
	if !commitForm.MatchString(raw.Commit) {
		return listing{}, fmt.Errorf("%s: %.60q is no commit: is this a HuggingFace hub?", address.Host, raw.Commit)
	}
	l := listing{commit: raw.Commit, sizes: map[string]int64{}}
	for _, file := range raw.Files {
		if !localName(file.Name) {
			continue
		}
		l.sizes[file.Name] = -1
		if file.Size != nil && *file.Size >= 0 {
			l.sizes[file.Name] = *file.Size
		}
	}
	return l, nil
}

// answer is a response after redirects. The caller closes its body.
type answer struct {
	*http.Response
	etag string // of the file: the hub's own, which it gives with its redirect to a store
	size int64  // of the whole file, likewise; -1: not given
}

// stat asks for a file's ETag and size.
func (r *remote) stat(ctx context.Context, want reference, commit, name string) (etag string, size int64, err error) {
	a, err := r.send(ctx, http.MethodHead, r.fileAddress(want, commit, name), identity())
	if err != nil {
		return "", 0, err
	}
	a.Body.Close()
	if a.size < 0 && a.StatusCode == http.StatusOK {
		a.size = a.ContentLength
	}
	if a.etag == "" {
		return "", 0, errors.New("the hub gave no ETag: is this a HuggingFace hub?")
	}
	return a.etag, a.size, nil
}

// open asks for a file from byte start on. When the store ignores start, the status is 200 and not 206.
func (r *remote) open(ctx context.Context, want reference, commit, name string, start int64) (*answer, error) {
	header := identity()
	if start > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", start))
	}
	a, err := r.send(ctx, http.MethodGet, r.fileAddress(want, commit, name), header)
	if err != nil {
		return nil, err
	}
	if encoding := a.Header.Get("Content-Encoding"); encoding != "" && encoding != "identity" {
		a.Body.Close()
		return nil, fmt.Errorf("the hub sent it in encoding %.20q, which was not asked for", encoding)
	}
	return a, nil
}

func (r *remote) fileAddress(want reference, commit, name string) *url.URL {
	elements := []string{want.owner, want.name, "resolve", commit}
	for element := range strings.SplitSeq(name, "/") {
		elements = append(elements, url.PathEscape(element))
	}
	return r.endpoint.JoinPath(elements...)
}

// identity asks for a file's bytes as they are stored: its size and its hash are those of them.
func identity() http.Header { return http.Header{"Accept-Encoding": {"identity"}} }

// send follows redirects itself: the token must not reach another host, and the hub's own response has the file's hash.
// A HEAD ends where that is known.
func (r *remote) send(ctx context.Context, method string, address *url.URL, header http.Header) (*answer, error) {
	client := &http.Client{
		Transport:     r.transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	a := &answer{size: -1}
	for range maxRedirects + 1 {
		request, err := http.NewRequestWithContext(ctx, method, address.String(), nil)
		if err != nil {
			return nil, err
		}
		maps.Copy(request.Header, header)
		request.Header.Set("User-Agent", "atlas")
		if r.token != "" && address.Scheme == r.endpoint.Scheme && address.Host == r.endpoint.Host {
			request.Header.Set("Authorization", "Bearer "+r.token)
		}
		if a.Response, err = client.Do(request); err != nil {
			return nil, temporary{fmt.Errorf("%s: %w", address.Host, withoutAddress(err))}
		}
		if err := a.note(a.Header); err != nil {
			a.Body.Close()
			return nil, err
		}
		location := a.Header.Get("Location")
		redirected := a.StatusCode/100 == 3 && location != ""
		if redirected && method == http.MethodHead && a.Header.Get("X-Linked-Etag") != "" {
			return a, nil
		}
		if !redirected {
			if a.StatusCode/100 != 2 {
				a.Body.Close()
				return nil, r.refusal(a.Response, address)
			}
			return a, nil
		}
		a.Body.Close()
		next, err := address.Parse(location)
		if err != nil {
			return nil, fmt.Errorf("redirect of %s: %w", address.Host, err)
		}
		if next.Scheme != "https" && next.Scheme != address.Scheme {
			return nil, fmt.Errorf("%s redirects to %s, which is not encrypted: refused", address.Host, next.Host)
		}
		address = next
	}
	return nil, fmt.Errorf("%s: more than %d redirects", address.Host, maxRedirects)
}

// note keeps what a response says about the whole file. The first that says it is the hub.
func (a *answer) note(header http.Header) error {
	if a.etag == "" {
		a.etag = trimETag(header.Get("X-Linked-Etag"))
	}
	if a.etag == "" {
		a.etag = trimETag(header.Get("ETag"))
	}
	if text := header.Get("X-Linked-Size"); text != "" && a.size < 0 {
		size, err := strconv.ParseInt(text, 10, 64)
		if err != nil || size < 0 {
			return fmt.Errorf("the hub gives %.40q as a file's size", text)
		}
		a.size = size
	}
	return nil
}

// temporary marks an error that may be gone when the request is repeated.
type temporary struct{ error }

func (t temporary) Unwrap() error { return t.error }

// withoutAddress takes the address out of a client's error: a store's address holds a signature.
func withoutAddress(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

// refusal says what a status means and what to do.
func (r *remote) refusal(response *http.Response, address *url.URL) error {
	host := address.Host
	model := strings.TrimSuffix(r.endpoint.String(), "/")
	reason := ""
	if text := response.Header.Get("X-Error-Message"); text != "" {
		reason = fmt.Sprintf(" (%s says %.200q)", host, text)
	}
	switch status := response.StatusCode; {
	case status == http.StatusUnauthorized && r.token == "":
		return fmt.Errorf("%s answers 401: the name is wrong, or the model is private or gated; check the spelling, or set HF_TOKEN to a token that may read it%s", host, reason)
	case status == http.StatusUnauthorized:
		return fmt.Errorf("%s answers 401: it does not accept this HF_TOKEN; make a new one at %s/settings/tokens%s", host, model, reason)
	case status == http.StatusForbidden:
		return fmt.Errorf("%s answers 403: this token may not read the model; accept the model's terms on its page at %s, and let the token read gated models%s", host, model, reason)
	case status == http.StatusNotFound:
		return fmt.Errorf("%s answers 404: no such model, revision or file; check the spelling%s", host, reason)
	case status == http.StatusRequestedRangeNotSatisfiable, status == http.StatusTooManyRequests, status/100 == 5:
		return temporary{fmt.Errorf("%s answers %d%s", host, status, reason)}
	default:
		return fmt.Errorf("%s answers %d%s", host, status, reason)
	}
}

// trimETag takes marks and quotes off an ETag.
func trimETag(etag string) string { return strings.Trim(strings.TrimPrefix(etag, "W/"), `"`) }
