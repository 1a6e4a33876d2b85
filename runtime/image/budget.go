package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"

	"github.com/containerd/containerd/v2/core/diff"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/typeurl/v2"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"

	"github.com/podstead/podstead/internal/disk"
)

const (
	maxRatio    = 200       // unpacked bytes for each compressed byte,
	ratioExempt = 1 << 30   // of images that unpack to more than this
	maxFiles    = 1_000_000 // files of an image
	maxFileText = 64 << 20  // bytes of their names and link targets, which containerd keeps in memory
	// attributeWeight is what a byte of the attributes of a directory counts. containerd keeps these in memory too.
	attributeWeight = 4
)

// budget bounds what one image or archive may write to the disk. It is safe for concurrent use.
type budget struct {
	limit int64  // of the bytes
	from  string // where the limit comes from
	// fromDisk is that the limit depends on the free space.
	fromDisk bool
	moved    func(n int64) // reports bytes that were written; may be nil
	applied  atomic.Int64  // bytes of compressed layers that were read to unpack them

	mu         sync.Mutex
	compressed int64 // size of the content
	unpacked   int64
	files      int
	text       int64
	err        error                    // the first limit that was exceeded; containerd's services do not return error values as they are
	programs   map[digest.Digest]string // values of labelPrograms, by layers that were unpacked
}

// newBudget returns the budget for one image: maxUnpacked, or half of the free space of the disk.
func (s *Store) newBudget(moved func(n int64)) (*budget, error) {
	b := &budget{limit: math.MaxInt64, from: "images.maxUnpackedSize", moved: moved}
	switch {
	case s.opts.MaxUnpackedSize > 0:
		b.limit = s.opts.MaxUnpackedSize
	case s.opts.Disk != "":
		var fs unix.Statfs_t
		if err := unix.Statfs(s.opts.Disk, &fs); err != nil {
			return nil, fmt.Errorf("free space of %s: %w", s.opts.Disk, err)
		}
		b.from, b.fromDisk = "half of the free disk space", true
		b.limit = disk.BlockBytes(&fs, fs.Bavail) / 2
	}
	return b, nil
}

// tooLarge is exceeded for the limit of the bytes.
func (b *budget) tooLarge(format string, args ...any) error {
	if b.fromDisk {
		return b.exceeded(spaceError{limitError(fmt.Sprintf(format, args...))})
	}
	return b.exceeded(exceeds(format, args...))
}

// content adds the size of compressed content that will be fetched or read.
func (b *budget) content(size int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if size < 0 || size > b.limit-b.compressed {
		return b.tooLarge("layers have more than %d bytes (%s)", b.limit, b.from)
	}
	b.compressed += size
	return nil
}

// stream adds bytes of a decompressed layer or archive.
func (b *budget) stream(n int64) error {
	if b.moved != nil {
		b.moved(n)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.unpacked += n
	return b.checkSize()
}

// reader returns a reader whose bytes count.
func (b *budget) reader(r io.Reader) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		n, err := r.Read(p)
		if n > 0 {
			err = errors.Join(b.stream(int64(n)), err)
		}
		return n, err
	})
}

// checkSize checks the unpacked bytes. The caller holds the mutex.
func (b *budget) checkSize() error {
	switch {
	case b.unpacked > b.limit:
		return b.tooLarge("unpacks to more than %d bytes (%s)", b.limit, b.from)
	case b.unpacked > ratioExempt && b.unpacked/maxRatio > b.compressed:
		return b.exceeded(exceeds("unpacks to more than %d bytes and %d times its compressed size", ratioExempt, maxRatio))
	}
	return nil
}

// file adds a file. Its data is added by stream, but for the holes of a sparse file, which become zeros on the disk.
func (b *budget) file(h *tar.Header) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.files++
	b.text += int64(len(h.Name) + len(h.Linkname))
	if h.Typeflag == tar.TypeDir {
		for k, v := range h.PAXRecords {
			b.text += attributeWeight * int64(len(k)+len(v))
		}
	}
	switch {
	case b.files > maxFiles:
		return b.exceeded(exceeds("has more than %d files", maxFiles))
	case b.text > maxFileText:
		return b.exceeded(exceeds("names and attributes of its files are too long, the limit is %d bytes of names or %d bytes of "+
			"attributes",
			maxFileText, maxFileText/attributeWeight))
	case isSparse(h) && h.Size > b.limit-b.unpacked:
		return b.tooLarge("sparse file of %d bytes: unpacks to more than %d bytes (%s)", h.Size, b.limit, b.from)
	case isSparse(h):
		b.unpacked += h.Size
	}
	return b.checkSize()
}

// isSparse reports whether a file of a tar stream has holes. The size in its header counts them.
func isSparse(h *tar.Header) bool {
	for k := range h.PAXRecords {
		if len(k) > len("GNU.sparse.") && k[:len("GNU.sparse.")] == "GNU.sparse." {
			return true
		}
	}
	return h.Typeflag == tar.TypeGNUSparse
}

// exceeded keeps the first error. The caller holds the mutex.
func (b *budget) exceeded(err error) error {
	if b.err == nil {
		b.err = err
	}
	return b.err
}

// refuse keeps a limit that was exceeded elsewhere.
func (b *budget) refuse(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_ = b.exceeded(err)
}

// explain returns the limit that was exceeded instead of err, which lost it on the way through containerd.
func (b *budget) explain(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil && b.err != nil {
		return b.err
	}
	return err
}

type budgetKey struct{}

// register adds the processor of layers to containerd's, once.
var register = sync.OnceFunc(func() { diff.RegisterProcessor(processLayer) })

// withBudget bounds what containerd unpacks with this context.
func withBudget(ctx context.Context, b *budget) context.Context {
	return context.WithValue(ctx, budgetKey{}, b)
}

// processLayer decompresses a layer and counts what it contains. Without a budget the layer is left to containerd.
func processLayer(ctx context.Context, mediaType string) (diff.StreamProcessorInit, bool) {
	b, ok := ctx.Value(budgetKey{}).(*budget)
	if !ok {
		return nil, false
	}
	compressed, err := images.DiffCompression(ctx, mediaType)
	if err != nil {
		return nil, false
	}
	found, ok := ctx.Value(programsKey{}).(*programs)
	if !ok {
		found = &programs{}
	}
	return func(_ context.Context, s diff.StreamProcessor, _ map[string]typeurl.Any) (diff.StreamProcessor, error) {
		counted := readerFunc(func(p []byte) (int, error) {
			n, err := s.Read(p)
			b.applied.Add(int64(n))
			return n, err
		})
		var plain io.ReadCloser = struct {
			io.Reader
			io.Closer
		}{counted, s}
		if compressed != "" {
			if plain, err = decompress(counted); err != nil {
				return nil, err
			}
		}
		return &layer{ReadCloser: newCountedTar(plain, b, found)}, nil
	}, true
}

// layer is a decompressed layer.
type layer struct{ io.ReadCloser }

func (*layer) MediaType() string { return ocispec.MediaTypeImageLayer }

// countedTar is a tar stream that fails when a budget is exceeded. A second reader of the stream has counted each header before the caller
// gets it: the size of a sparse file is only in its header.
type countedTar struct {
	from   io.ReadCloser
	budget *budget
	copied *io.PipeWriter
	done   chan struct{}
}

func newCountedTar(from io.ReadCloser, b *budget, found *programs) *countedTar {
	r, w := io.Pipe()
	c := &countedTar{from: from, budget: b, copied: w, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		err := count(r, b, found)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		r.CloseWithError(err)
	}()
	return c
}

// count counts the files of a stream, and finds their programs. An error of the stream is found again by its other reader.
func count(r io.Reader, b *budget, found *programs) error {
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if err != nil {
			found.read.Store(errors.Is(err, io.EOF))
			return nil
		}
		if err := b.file(h); err != nil {
			return err
		}
		found.inspect(h, tr)
	}
}

func (c *countedTar) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if refused(err) { // by the decompression
		c.budget.refuse(err)
	}
	if n > 0 {
		if err := c.budget.stream(int64(n)); err != nil {
			return 0, err
		}
		if _, err := c.copied.Write(p[:n]); err != nil {
			return 0, err
		}
		// Wait until the second reader needs more. The caller could write the holes of a file for a long time without another Read.
		if _, err := c.copied.Write(nil); err != nil {
			return 0, err
		}
	}
	return n, err
}

// Close ends the second reader and waits for it.
func (c *countedTar) Close() error {
	err := errors.Join(c.copied.Close(), c.from.Close())
	<-c.done
	return err
}
