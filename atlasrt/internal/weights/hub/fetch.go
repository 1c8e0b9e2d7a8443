package hub

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path"
	"regexp"
	"sync"
	"time"
)

// maxUnsized bounds a file whose size the hub does not say.
const maxUnsized = 256 << 20

var (
	sha256Form = regexp.MustCompile(`^[0-9a-f]{64}$`)
	sha1Form   = regexp.MustCompile(`^[0-9a-f]{40}$`)
)

// blob is a file's content, named by its ETag. The hub's ETags are the content's SHA-256, or git's SHA-1 for small files.
type blob struct {
	etag string
	size int64 // -1: unknown
}

// name is what the blob is called in the cache. An ETag of another form never becomes a path.
func (b blob) name() string {
	if sha256Form.MatchString(b.etag) || sha1Form.MatchString(b.etag) {
		return b.etag
	}
	sum := sha256.Sum256([]byte(b.etag))
	return "etag-" + hex.EncodeToString(sum[:20])
}

// verifiable reports whether the ETag is a hash of the content.
func (b blob) verifiable() bool {
	return sha256Form.MatchString(b.etag) || sha1Form.MatchString(b.etag) && b.size >= 0
}

// hash computes the ETag from the content, where the ETag is verifiable.
func (b blob) hash() hash.Hash {
	if !sha1Form.MatchString(b.etag) {
		return sha256.New()
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", b.size) // as git does
	return h
}

// fetch downloads one file, continuing where an earlier attempt was cut, and links it into the snapshot. It reports
// whether bytes arrived. listed is the size by the hub's list of files.
func (d *download) fetch(ctx context.Context, commit, name string, listed int64) (moved bool, err error) {
	short, cancel := context.WithTimeout(ctx, d.stall)
	etag, size, err := d.remote.stat(short, d.want, commit, name)
	cancel()
	if err != nil {
		return false, err
	}
	if size < 0 {
		size = listed
	}
	b := blob{etag, size}
	defer d.lockBlob(b.name())()
	file := path.Join("blobs", b.name())
	if info, err := d.cache.root.Stat(file); err != nil || size >= 0 && info.Size() != size {
		if moved, err = d.receive(ctx, commit, name, b); err != nil {
			return moved, err
		}
		if err := d.cache.root.Rename(file+".part", file); err != nil {
			return moved, err
		}
	}
	return moved, d.cache.link(commit, name, b.name())
}

// receive completes the blob's .part file and checks it. The file stays when the connection ends early, and goes when its
// content is wrong.
func (d *download) receive(ctx context.Context, commit, name string, b blob) (moved bool, err error) {
	part := path.Join("blobs", b.name()+".part")
	file, err := d.cache.root.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return false, err
	}
	defer func() {
		err = errors.Join(err, file.Close())
		if errors.Is(err, errContent) {
			err = errors.Join(err, d.cache.root.Remove(part))
		}
	}()
	sum := b.hash()
	have, err := io.Copy(sum, file) // the next write appends
	if err != nil {
		return false, err
	}
	defer func() {
		// What an earlier run left behind may be at fault: without it the next attempt starts over.
		if have > 0 && errors.Is(err, errContent) {
			err = temporary{err}
		}
	}()
	if b.size < 0 || have < b.size {
		if moved, err = d.append(ctx, commit, name, b, file, have, sum); err != nil {
			return moved, err
		}
	}
	info, err := file.Stat()
	if err != nil {
		return moved, err
	}
	if b.size >= 0 && info.Size() != b.size {
		return moved, fmt.Errorf("%w: %d bytes, the hub promised %d", errContent, info.Size(), b.size)
	}
	if b.verifiable() && hex.EncodeToString(sum.Sum(nil)) != b.etag {
		return moved, fmt.Errorf("%w: its hash is %x, the hub promised %s", errContent, sum.Sum(nil), b.etag)
	}
	return moved, file.Sync()
}

var (
	errContent = errors.New("what arrived is not the file: it was removed, run it again to start over")
	errStalled = errors.New("nothing arrived for a while")
)

// append asks for the rest of the file, which has the given bytes already.
func (d *download) append(ctx context.Context, commit, name string, b blob, file io.Writer, have int64, sum io.Writer) (moved bool, err error) {
	// A connection that brings nothing for a while is cut, and counts as one that broke.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(d.stall, func() { cancel(errStalled) })
	defer watchdog.Stop()
	a, err := d.remote.open(ctx, d.want, commit, name, have)
	if err != nil {
		return false, err
	}
	defer a.Body.Close()
	if a.etag != b.etag {
		return false, temporary{errors.New("the file changed on the hub between two requests")}
	}
	if have > 0 && !continues(a.Response, have) {
		return false, fmt.Errorf("%w: the hub does not continue a file that was cut", errContent)
	}
	limit := int64(maxUnsized)
	if b.size >= 0 {
		limit = b.size - have
	}
	if a.ContentLength > limit {
		return false, fmt.Errorf("%w: %d bytes were announced, at most %d are left", errContent, a.ContentLength, limit)
	}
	out := io.MultiWriter(file, sum)
	body := io.LimitReader(a.Body, limit+1)
	buffer := make([]byte, 1<<20)
	for {
		n, readErr := body.Read(buffer)
		watchdog.Reset(d.stall)
		if _, err := out.Write(buffer[:n]); err != nil {
			return moved, err
		}
		have += int64(n)
		moved = moved || n > 0
		d.report(name, have, b.size)
		if limit -= int64(n); limit < 0 {
			return moved, fmt.Errorf("%w: it is longer than it should be", errContent)
		}
		if readErr == io.EOF {
			if b.size >= 0 && have < b.size {
				return moved, temporary{fmt.Errorf("the connection ended after %d of %d bytes", have, b.size)}
			}
			return moved, nil
		}
		if readErr != nil {
			return moved, temporary{fmt.Errorf("the connection broke after %d bytes: %w", have, errors.Join(readErr, context.Cause(ctx)))}
		}
	}
}

// continues reports whether a response starts at the byte that was asked for.
func continues(response *http.Response, start int64) bool {
	var first int64
	_, err := fmt.Sscanf(response.Header.Get("Content-Range"), "bytes %d-", &first)
	return response.StatusCode == http.StatusPartialContent && err == nil && first == start
}

func (d *download) report(file string, done, total int64) {
	if d.progress == nil {
		return
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.progress(Progress{Model: d.want.String(), File: file, Done: done, Total: total})
}

// lockBlob keeps two files of the same content from writing one blob; it gives the unlocking.
func (d *download) lockBlob(name string) func() {
	d.mutex.Lock()
	if d.blobs == nil {
		d.blobs = map[string]*sync.Mutex{}
	}
	if d.blobs[name] == nil {
		d.blobs[name] = &sync.Mutex{}
	}
	blob := d.blobs[name]
	d.mutex.Unlock()
	blob.Lock()
	return blob.Unlock
}
