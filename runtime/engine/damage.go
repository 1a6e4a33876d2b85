package engine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"slices"
)

// Files named damage find damaged files of the container engine and set them aside.
//
// bbolt, which keeps the engine's records, trusts its files: it panics or crashes on a damaged page, some of them only when it
// writes. The checks read the files without it and cannot panic. They know nothing about containers and
// do not decide what follows from damage.

// The file format of bbolt 1.5 (internal/common): numbers are in the byte order of the host.
const (
	magic, formatVersion               = 0xED0CDAED, 2
	pageHeader, element, bucket        = 16, 16, 16
	metaSize, checksumAt               = 64, 56
	branchPage, leafPage               = 0x01, 0x02
	freelistPage                       = 0x10
	bucketFlag                         = 0x01
	noFreelist                  uint64 = 1<<64 - 1
	minPageSize, maxPages              = 1 << 10, 1 << 32
	maxPageSize                        = 16 << 20
	maxDepth                           = 64 // containerd nests ten buckets, and a bucket of this depth could not be stored on any disk
)

// Reasons of damage, as they appear in the names of files that are set aside.
const (
	reasonMissing  = "missing"
	reasonEmpty    = "empty"
	reasonHeader   = "bad-header"
	reasonSize     = "truncated"
	reasonPage     = "bad-page"
	reasonFreelist = "bad-freelist"
	reasonRecord   = "bad-record"
	reasonContent  = "bad-content"
)

// damageError is the error of a check that found damage. Other errors mean that the file could not be read.
type damageError struct {
	File, Reason, Detail string
}

// Error names the file and the damage.
func (e *damageError) Error() string { return fmt.Sprintf("%s is damaged: %s", e.File, e.Detail) }

// visitRecord is called for each record of a database: the names of its buckets, its key and its value. An error is damage.
type visitRecord func(buckets []string, key, value []byte) error

// checkHeader checks the header of a bbolt database, its size and the headers of its first pages. It reads a few pages of a
// database of any size. An empty file is damaged. The error is [fs.ErrNotExist] if there is no file.
func checkHeader(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	c := checker{file: path, read: f}
	return c.open(f)
}

// checkDatabase checks a bbolt database completely, and calls visit for its records; visit may be nil.
func checkDatabase(path string, visit visitRecord) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	c := checker{file: path, read: f, visit: visit}
	if err := c.open(f); err != nil {
		return err
	}
	c.seen = map[uint64]bool{}
	if err := c.tree(c.root, nil, nil, nil, 0); err != nil {
		return err
	}
	return c.freelist()
}

// checker checks one database.
type checker struct {
	file     string
	read     io.ReaderAt
	visit    visitRecord
	pageSize uint64
	pages    uint64 // the number of pages in use
	root     uint64
	free     uint64
	seen     map[uint64]bool // the pages that are part of the tree or of the free list
}

func (c *checker) damaged(reason, format string, args ...any) error {
	return &damageError{c.file, reason, fmt.Sprintf(format, args...)}
}

// open reads the header, of which the file has two. bbolt uses the newer one that is valid.
func (c *checker) open(f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if st.Size() == 0 {
		return c.damaged(reasonEmpty, "file is empty")
	}
	newest := uint64(0)
	for at := uint64(0); at <= maxPageSize; at = max(minPageSize, at*2) {
		m := make([]byte, metaSize)
		if n, err := f.ReadAt(m, int64(at)+pageHeader); n < metaSize {
			if errors.Is(err, io.EOF) {
				break
			}
			return fmt.Errorf("read %s: %w", c.file, err)
		}
		size := uint64(u32(m[8:]))
		if !validMeta(m) || at != 0 && at != size {
			continue
		}
		if txid := u64(m[48:]); c.pageSize == 0 || txid > newest {
			newest, c.pageSize, c.root, c.free, c.pages = txid, size, u64(m[16:]), u64(m[32:]), u64(m[40:])
		}
	}
	if c.pageSize == 0 {
		return c.damaged(reasonHeader, "no valid header")
	}
	if c.pages > maxPages || c.pages*c.pageSize > uint64(st.Size()) {
		return c.damaged(reasonSize, "file has %d bytes, its header requires %d pages of %d bytes", st.Size(), c.pages, c.pageSize)
	}
	if _, err := c.page(c.root); err != nil {
		return err
	}
	if c.free != noFreelist {
		_, err = c.page(c.free)
	}
	return err
}

func validMeta(m []byte) bool {
	sum := fnv.New64a()
	sum.Write(m[:checksumAt])
	size := u32(m[8:])
	return u32(m) == magic && u32(m[4:]) == formatVersion && u64(m[checksumAt:]) == sum.Sum64() &&
		size >= minPageSize && size <= maxPageSize && size&(size-1) == 0
}

// page reads a page with the pages that it continues on.
func (c *checker) page(id uint64) ([]byte, error) {
	if id < 2 || id >= c.pages {
		return nil, c.damaged(reasonPage, "reference to page %d of %d", id, c.pages)
	}
	head := make([]byte, pageHeader)
	if _, err := c.read.ReadAt(head, int64(id*c.pageSize)); err != nil {
		return nil, fmt.Errorf("read %s: %w", c.file, err)
	}
	flags, more := u16(head[8:]), uint64(u32(head[12:]))
	if u64(head) != id || flags != branchPage && flags != leafPage && flags != freelistPage || id+more >= c.pages {
		return nil, c.damaged(reasonPage, "page %d has a bad header", id)
	}
	if c.seen == nil {
		return head, nil
	}
	for i := id; i <= id+more; i++ {
		if c.seen[i] {
			return nil, c.damaged(reasonPage, "page %d is used twice", i)
		}
		c.seen[i] = true
	}
	p := make([]byte, (more+1)*c.pageSize)
	if _, err := c.read.ReadAt(p, int64(id*c.pageSize)); err != nil {
		return nil, fmt.Errorf("read %s: %w", c.file, err)
	}
	return p, nil
}

// tree checks a page of the tree and what it refers to. Its keys are at least low and less than high; nil means no limit.
func (c *checker) tree(id uint64, buckets []string, low, high []byte, depth int) error {
	if depth > maxDepth {
		return c.damaged(reasonPage, "tree is deeper than %d", maxDepth)
	}
	p, err := c.page(id)
	if err != nil {
		return err
	}
	if u16(p[8:]) == leafPage {
		return c.leaf(p, fmt.Sprintf("page %d", id), buckets, low, high, depth)
	}
	count := int(u16(p[10:]))
	if u16(p[8:]) != branchPage || count == 0 {
		return c.damaged(reasonPage, "page %d is not part of a tree", id)
	}
	keys, err := c.keys(p, fmt.Sprintf("page %d", id), low, high, false)
	if err != nil {
		return err
	}
	for i := range count {
		end := high
		if i+1 < count {
			end = keys[i+1]
		}
		if err := c.tree(u64(p[pageHeader+i*element+8:]), buckets, keys[i], end, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// keys returns the keys of a page, which must be in order.
func (c *checker) keys(p []byte, name string, low, high []byte, leaf bool) ([][]byte, error) {
	count := int(u16(p[10:]))
	if pageHeader+count*element > len(p) {
		return nil, c.damaged(reasonPage, "%s has %d elements", name, count)
	}
	keys := make([][]byte, count)
	for i := range count {
		at := pageHeader + i*element
		pos, length, value := uint64(u32(p[at:])), uint64(u32(p[at+4:])), uint64(0)
		if leaf {
			pos, length, value = uint64(u32(p[at+4:])), uint64(u32(p[at+8:])), uint64(u32(p[at+12:]))
		}
		start := uint64(at) + pos
		if start < uint64(pageHeader+count*element) || start+length+value > uint64(len(p)) {
			return nil, c.damaged(reasonPage, "element %d of %s is outside of the page", i, name)
		}
		keys[i] = p[start : start+length]
		ordered := i == 0 || bytes.Compare(keys[i-1], keys[i]) < 0
		if !ordered || low != nil && bytes.Compare(keys[i], low) < 0 || high != nil && bytes.Compare(keys[i], high) >= 0 {
			return nil, c.damaged(reasonPage, "element %d of %s has a key that is out of order", i, name)
		}
	}
	return keys, nil
}

// leaf checks a page with records and buckets.
func (c *checker) leaf(p []byte, name string, buckets []string, low, high []byte, depth int) error {
	keys, err := c.keys(p, name, low, high, true)
	if err != nil {
		return err
	}
	for i, key := range keys {
		at := pageHeader + i*element
		start := at + int(u32(p[at+4:])) + len(key)
		value := p[start : start+int(u32(p[at+12:]))]
		switch flags := u32(p[at:]); {
		case len(key) == 0:
			err = c.damaged(reasonPage, "element %d of %s has no key", i, name)
		case flags == bucketFlag:
			err = c.bucket(value, append(slices.Clip(buckets), string(key)), depth)
		case flags != 0:
			err = c.damaged(reasonPage, "element %d of %s has bad flags", i, name)
		case c.visit != nil:
			if e := c.visit(buckets, key, value); e != nil {
				err = c.damaged(reasonRecord, "record %q of %q: %v", key, buckets, e)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bucket checks a bucket, whose records are on pages of its own or, if they are few, in its value.
func (c *checker) bucket(value []byte, buckets []string, depth int) error {
	if len(value) < bucket {
		return c.damaged(reasonPage, "bucket %q has %d bytes", buckets, len(value))
	}
	if root := u64(value); root != 0 {
		return c.tree(root, buckets, nil, nil, depth+1)
	}
	inline := value[bucket:]
	if len(inline) < pageHeader || u16(inline[8:]) != leafPage {
		return c.damaged(reasonPage, "bucket %q has a bad page", buckets)
	}
	if depth > maxDepth {
		return c.damaged(reasonPage, "tree is deeper than %d", maxDepth)
	}
	return c.leaf(inline, fmt.Sprintf("bucket %q", buckets), buckets, nil, nil, depth+1)
}

// freelist checks the list of free pages. A page that is both free and in use would be overwritten.
func (c *checker) freelist() error {
	if c.free == noFreelist {
		return nil
	}
	p, err := c.page(c.free)
	if err != nil {
		return err
	}
	ids, count := p[pageHeader:], uint64(u16(p[10:]))
	if count == 0xFFFF && len(ids) >= 8 { // the count does not fit and is the first element
		ids, count = ids[8:], u64(ids)
	}
	if u16(p[8:]) != freelistPage || count > uint64(len(ids))/8 {
		return c.damaged(reasonFreelist, "the list of free pages has a bad header")
	}
	for i := range count {
		id := u64(ids[i*8:])
		if id < 2 || id >= c.pages || c.seen[id] {
			return c.damaged(reasonFreelist, "page %d is not free", id)
		}
		c.seen[id] = true
	}
	return nil
}

func u16(b []byte) uint16 { return binary.NativeEndian.Uint16(b) }
func u32(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }
func u64(b []byte) uint64 { return binary.NativeEndian.Uint64(b) }
