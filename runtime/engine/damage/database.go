package damage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// Depth is how much of a database a check reads.
type Depth string

const (
	// Header is what bbolt reads to open the file and find the first record. That includes the list of free pages or, if the file has
	// none, as containerd's metadata, the headers of all pages.
	Header Depth = "header"
	// Pages is everything that bbolt relies on.
	Pages Depth = "pages"
	// Records is Pages, and the records of containerd's metadata: see [CheckRecord].
	Records Depth = "records"
)

// lockTimeout bounds the wait for the lock of a database. Only a daemon that was killed can hold it, while the kernel closes its files.
const lockTimeout = time.Second

// CheckDatabase checks a bbolt database that no other process uses, which it does not change. It takes some milliseconds to start a child
// process. An empty file is damaged. The error is [fs.ErrNotExist] if there is no file.
//
// A file that cannot be read is not damaged, nor is one whose check was ended by somebody else, or that another process has locked.
func CheckDatabase(ctx context.Context, path string, depth Depth) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if st.Size() == 0 {
		return &Error{path, ReasonEmpty, "file is empty"}
	}
	err = checkInChild(ctx, path, depth)
	if _, bad := errors.AsType[*Error](err); bad { // bbolt does not distinguish it from a read error, or crashes on both
		if err := readable(path); err != nil {
			return err
		}
	}
	return err
}

// check checks a database. It may panic, crash, or not end.
func check(path string, depth Depth) error {
	size, err := checkSize(path)
	if err != nil {
		return err
	}
	c := checker{file: path, depth: depth}
	return c.view(&bolt.Options{PreLoadFreelist: true}, func(tx *bolt.Tx) error {
		tx.Cursor().First()
		if depth == Header {
			return nil
		}
		pages := size / int64(tx.DB().Info().PageSize)
		if err := c.pages(tx, int(pages)); err != nil {
			return err
		}
		for err := range tx.Check() {
			return c.damaged(ReasonPage, "%v", err) // the other errors are not needed, nor is the end of the check
		}
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error { return c.bucket([]string{string(name)}, b) })
	})
}

// checkSize returns the size of what is in use. A file that is shorter lost its end: bbolt would crash.
func checkSize(path string) (used int64, err error) {
	c := checker{file: path}
	err = c.view(&bolt.Options{}, func(tx *bolt.Tx) error {
		st, err := os.Stat(path)
		if err != nil {
			return err
		}
		if used = tx.Size(); used > st.Size() || used < 0 {
			return c.damaged(ReasonSize, "file has %d bytes, its header requires %d", st.Size(), used)
		}
		return nil
	})
	return used, err
}

type checker struct {
	file  string
	depth Depth
}

func (c *checker) damaged(reason, format string, args ...any) error {
	return &Error{c.file, reason, fmt.Sprintf(format, args...)}
}

// view opens the database for reading. A header that bbolt rejects is damage.
func (c *checker) view(o *bolt.Options, read func(*bolt.Tx) error) error {
	o.ReadOnly, o.Timeout = true, lockTimeout
	db, err := bolt.Open(c.file, 0, o)
	if errors.Is(err, bolterrors.ErrTimeout) {
		return errors.New("another process uses the database")
	}
	if _, failed := errors.AsType[syscall.Errno](err); failed {
		return err
	}
	if err != nil {
		return c.damaged(ReasonHeader, "%v", err)
	}
	err = db.View(read)
	if err != nil {
		return err // db.Close would wait for a check that has not ended
	}
	return db.Close()
}

// pages checks what [bolt.Tx.Check] does not: that each page ends before the next one, and that the list of free pages contains neither
// itself, nor the header, nor pages that do not exist. bbolt writes to what is in the list.
func (c *checker) pages(tx *bolt.Tx, count int) error {
	free, lists := 0, 0
	for id := 0; id < count; {
		p, err := tx.Page(id)
		if err != nil {
			return err
		}
		switch p.Type {
		case "free": // what it contained before does not matter
			free++
			p.OverflowCount = 0
		case "freelist":
			lists++
		}
		next := id + 1 + p.OverflowCount
		if (p.Type == "meta") != (id < 2) || next > count {
			return c.damaged(ReasonPage, "page %d of %d has a bad header", id, count)
		}
		id = next
	}
	if listed := tx.DB().Stats().FreePageN; free != listed || lists > 1 {
		return c.damaged(ReasonPage, "%d of %d pages in %d lists of free pages are not free", listed-free, listed, lists)
	}
	return nil
}

// bucket reads all records of a bucket, which [bolt.Tx.Check] does not, and checks their order: that of buckets which have no page of their
// own is not checked by it.
func (c *checker) bucket(names []string, b *bolt.Bucket) error {
	if b.Root() == 0 && b.Stats().InlineBucketInuse == 0 {
		return c.damaged(ReasonPage, "bucket %q has a bad page", names)
	}
	var last []byte
	return b.ForEach(func(key, value []byte) error {
		if len(key) == 0 || last != nil && bytes.Compare(last, key) >= 0 {
			return c.damaged(ReasonPage, "bucket %q has a key that is out of order", names)
		}
		last = key
		if value == nil {
			name := append(slices.Clip(names), string(key))
			child := b.Bucket(key)
			if child == nil {
				return c.damaged(ReasonPage, "bucket %q cannot be found", name)
			}
			return c.bucket(name, child)
		}
		crc32.ChecksumIEEE(value) // a value outside of the file crashes
		if c.depth == Records {
			if err := CheckRecord(names, key, value); err != nil {
				return c.damaged(ReasonRecord, "record %q of %q: %v", key, names, err)
			}
		}
		return nil
	})
}
