package damage

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

// database creates a database with nested buckets, pages of each kind and free pages. That of containerd has no list of free pages.
func database(t testing.TB, records int, noList bool) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "meta.db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true, NoFreelistSync: noList})
	if err != nil {
		t.Fatal(err)
	}
	for _, remove := range []bool{false, true} {
		err := db.Update(func(tx *bolt.Tx) error {
			for i := range records {
				b, err := tx.CreateBucketIfNotExists([]byte("v1"))
				for _, name := range []string{"namespace", "containers", fmt.Sprint(i)} {
					if err == nil {
						b, err = b.CreateBucketIfNotExists([]byte(name))
					}
				}
				if err == nil && remove && i%3 == 0 {
					err = b.Delete([]byte("value"))
				} else if err == nil {
					err = b.Put([]byte("value"), make([]byte, 10+i*37%9000))
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// rounds is the number of files that TestRandomDamage checks.
var rounds = flag.Int("damage-rounds", 160, "number of damaged files")

func TestIntactDatabase(t *testing.T) {
	for _, noList := range []bool{false, true} {
		for _, records := range []int{0, 1, 20, 2000} {
			path := database(t, records, noList)
			for _, depth := range []Depth{Header, Pages, Records} {
				if err := CheckDatabase(t.Context(), path, depth); err != nil {
					t.Errorf("%d records, without a list: %t: %s: %v", records, noList, depth, err)
				}
			}
		}
	}
}

// TestUnfinishedTransaction: a database whose writer was killed is intact.
func TestUnfinishedTransaction(t *testing.T) {
	for _, noList := range []bool{false, true} {
		path := database(t, 200, noList)
		db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true, NoFreelistSync: noList, InitialMmapSize: 64 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		reader, err := db.Begin(false) // keeps the pages that the next transactions free
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = reader.Rollback() }()
		for range 5 {
			if err := db.Update(func(tx *bolt.Tx) error { return rewrite(tx.Bucket([]byte("v1"))) }); err != nil {
				t.Fatal(err)
			}
		}
		content, err := os.ReadFile(path)
		if err == nil {
			path = filepath.Join(t.TempDir(), "killed.db")
			err = os.WriteFile(path, content, 0o600)
		}
		if err := errors.Join(err, CheckDatabase(t.Context(), path, Pages)); err != nil {
			t.Errorf("without a list: %t: %v", noList, err)
		}
	}
}

func TestDamagedDatabase(t *testing.T) {
	page := 4096
	for _, test := range []struct {
		reason string
		header bool // found by the check of the header
		damage func(b []byte) []byte
	}{
		{ReasonEmpty, true, func([]byte) []byte { return nil }},
		{ReasonHeader, true, func(b []byte) []byte { return b[:100] }},
		{ReasonHeader, true, func(b []byte) []byte { return make([]byte, len(b)) }},
		{ReasonHeader, true, func(b []byte) []byte { b[20]++; b[page+30]++; return b }},
		{ReasonSize, true, func(b []byte) []byte { return b[:len(b)/2] }},
		{ReasonPage, false, func(b []byte) []byte { clear(b[2*page : len(b)-2*page]); return b }},
		{ReasonPage, false, func(b []byte) []byte { // each page continues on four billion pages: the check needs too much memory
			for at := 2 * page; at < len(b); at += page {
				binary.NativeEndian.PutUint32(b[at+12:], 1<<32-1)
			}
			return b
		}},
	} {
		for _, noList := range []bool{false, true} {
			path := database(t, 500, noList)
			b, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, test.damage(b), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			err = CheckDatabase(t.Context(), path, Pages)
			found, is := errors.AsType[*Error](err)
			if !is || found.Reason != test.reason || found.File != path {
				t.Errorf("got %v, want %s", err, test.reason)
			}
			t.Log(err)
			if err := CheckDatabase(t.Context(), path, Header); test.header && err == nil {
				t.Errorf("%s: not found by the check of the header", test.reason)
			}
		}
	}
}

// TestDamagedFreelist: Tx.Check does not see that the list of free pages contains one page too many, to which bbolt would write.
func TestDamagedFreelist(t *testing.T) {
	for _, page := range []uint64{0, 1, 1 << 40} {
		path := database(t, 500, false)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		newest := b[16:]
		if binary.NativeEndian.Uint64(b[4096+64:]) > binary.NativeEndian.Uint64(b[64:]) {
			newest = b[4096+16:]
		}
		list := b[4096*binary.NativeEndian.Uint64(newest[32:]):]
		count := binary.NativeEndian.Uint16(list[10:])
		binary.NativeEndian.PutUint16(list[10:], count+1)
		binary.NativeEndian.PutUint64(list[16+8*int(count):], page)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		err = CheckDatabase(t.Context(), path, Pages)
		if found, is := errors.AsType[*Error](err); !is || found.Reason != ReasonPage {
			t.Errorf("page %d: got %v", page, err)
		}
	}
}

// TestRecordIsDamage: a record that containerd cannot decode is damage of its metadata only.
func TestRecordIsDamage(t *testing.T) {
	path := database(t, 5, true)
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("v1")).Bucket([]byte("namespace")).Bucket([]byte("containers")).Bucket([]byte("1")).Put([]byte("createdat"), []byte("?"))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	err = CheckDatabase(t.Context(), path, Records)
	if found, is := errors.AsType[*Error](err); !is || found.Reason != ReasonRecord || !strings.Contains(found.Detail, `"createdat"`) {
		t.Errorf("got %v", err)
	}
	if err := CheckDatabase(t.Context(), path, Pages); err != nil {
		t.Errorf("check of the pages: %v", err)
	}
}

// TestNotDamage: what prevents a check is an error, not damage.
func TestNotDamage(t *testing.T) {
	dir := t.TempDir()
	err := CheckDatabase(t.Context(), filepath.Join(dir, "none"), Pages)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	wantNoDamage := func(name, text string, err error) {
		if _, is := errors.AsType[*Error](err); is || err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A directory cannot be read, as a file on a broken disk.
	wantNoDamage("unreadable file", "is a directory", CheckDatabase(t.Context(), dir, Pages))
	path := database(t, 20, false)
	db, err := bolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantNoDamage("locked", "another process uses the database", CheckDatabase(t.Context(), path, Pages))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantNoDamage("cancelled", "context canceled", CheckDatabase(ctx, path, Pages))
}

// TestCrashed: a child that was killed by somebody else has found nothing.
func TestCrashed(t *testing.T) {
	for script, want := range map[string]bool{
		"exit 0": false, "exit 1": false, "exit 2": true, "kill -KILL $$": false, "kill -TERM $$": false, "kill -SEGV $$": true, "kill -BUS $$": true,
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		_ = cmd.Run()
		if got := crashed(cmd.ProcessState); got != want {
			t.Errorf("%s: %t", script, got)
		}
	}
}

// TestRandomDamage: a database that passes the check can be read and written by bbolt, whatever was damaged.
func TestRandomDamage(t *testing.T) {
	const page = 4096
	damages := map[string]func(*rand.Rand, []byte) []byte{
		"bits": func(r *rand.Rand, b []byte) []byte {
			for range 1 + r.IntN(3) {
				b[r.IntN(len(b))] ^= byte(1 << r.IntN(8))
			}
			return b
		},
		"bits in headers": func(r *rand.Rand, b []byte) []byte {
			for range 1 + r.IntN(3) {
				b[r.IntN(len(b)/page)*page+r.IntN(64)] ^= byte(1 << r.IntN(8))
			}
			return b
		},
		"bytes": func(r *rand.Rand, b []byte) []byte {
			for at, n := r.IntN(len(b)), r.IntN(64); n > 0 && at < len(b); n-- {
				b[at] = byte(r.Uint32())
				at++
			}
			return b
		},
		"zeroed page": func(r *rand.Rand, b []byte) []byte {
			at := r.IntN(len(b)/page) * page
			clear(b[at : at+page])
			return b
		},
		"zeroed sector": func(r *rand.Rand, b []byte) []byte {
			at := r.IntN(len(b)/512) * 512
			clear(b[at : at+512])
			return b
		},
		"cut": func(r *rand.Rand, b []byte) []byte { return b[:r.IntN(len(b))] },
		"swapped pages": func(r *rand.Rand, b []byte) []byte {
			x, y := b[r.IntN(len(b)/page)*page:][:page], b[r.IntN(len(b)/page)*page:][:page]
			was := string(x)
			copy(x, y)
			copy(y, was)
			return b
		},
		"copied page": func(r *rand.Rand, b []byte) []byte {
			copy(b[r.IntN(len(b)/page)*page:][:page], b[r.IntN(len(b)/page)*page:])
			return b
		},
	}
	for _, noList := range []bool{false, true} {
		intact, err := os.ReadFile(database(t, 300, noList))
		if err != nil {
			t.Fatal(err)
		}
		for name, damage := range damages {
			t.Run(fmt.Sprintf("%s, without a list %t", name, noList), func(t *testing.T) {
				t.Parallel()
				random, passed := rand.New(rand.NewPCG(1, 2)), 0
				path := filepath.Join(t.TempDir(), "meta.db")
				n := max(1, *rounds/len(damages)/2)
				for range n {
					b := damage(random, append([]byte(nil), intact...))
					if err := os.WriteFile(path, b, 0o600); err != nil {
						t.Fatal(err)
					}
					err := CheckDatabase(t.Context(), path, Records)
					if _, is := errors.AsType[*Error](err); is {
						continue
					}
					if err != nil {
						t.Fatal(err)
					}
					passed++
					use(t, path, noList)
				}
				t.Logf("%d of %d are intact", passed, n)
			})
		}
	}
}

// use reads all records of a database and rewrites them.
func use(t *testing.T, path string, noList bool) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, NoSync: true, NoFreelistSync: noList})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		return tx.ForEach(func(name []byte, b *bolt.Bucket) error { return rewrite(b) })
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

func rewrite(b *bolt.Bucket) error {
	return b.ForEach(func(k, v []byte) error {
		if v == nil {
			return rewrite(b.Bucket(k))
		}
		return b.Put(append([]byte(nil), k...), append([]byte(nil), v...))
	})
}

func BenchmarkCheckDatabase(b *testing.B) {
	path := database(b, 2000, true)
	st, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(st.Size())
	for b.Loop() {
		if err := CheckDatabase(b.Context(), path, Records); err != nil {
			b.Fatal(err)
		}
	}
}
