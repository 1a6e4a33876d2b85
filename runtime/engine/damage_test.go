package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

// database creates a database with nested buckets, pages of each kind and free pages.
func database(t testing.TB, records int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "meta.db")
	db, err := bolt.Open(path, 0o600, &bolt.Options{NoSync: true})
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

func TestIntactDatabase(t *testing.T) {
	for _, records := range []int{0, 1, 20, 2000} {
		path, visited := database(t, records), 0
		err := checkDatabase(path, func(buckets []string, _, _ []byte) error {
			if len(buckets) != 4 {
				t.Errorf("record in %q", buckets)
			}
			visited++
			return nil
		})
		if err := errors.Join(err, checkHeader(path)); err != nil {
			t.Errorf("%d records: %v", records, err)
		}
		if want := records - (records+2)/3; visited != want {
			t.Errorf("visited %d of %d records", visited, want)
		}
	}
}

func TestDamagedDatabase(t *testing.T) {
	page := 4096
	for _, test := range []struct {
		reason string
		header bool // found by checkHeader
		damage func(b []byte) []byte
	}{
		{reasonEmpty, true, func([]byte) []byte { return nil }},
		{reasonSize, true, func(b []byte) []byte { return b[:100] }},
		{reasonHeader, true, func(b []byte) []byte { return make([]byte, len(b)) }},
		{reasonHeader, true, func(b []byte) []byte { b[20]++; b[page+30]++; return b }},
		{reasonSize, true, func(b []byte) []byte { return b[:len(b)/2] }},
		{reasonPage, false, func(b []byte) []byte { clear(b[2*page : len(b)-2*page]); return b }},
	} {
		path := database(t, 500)
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, test.damage(b), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		found, is := errors.AsType[*damageError](checkDatabase(path, nil))
		if !is || found.Reason != test.reason || found.File != path {
			t.Errorf("got %v, want %s", found, test.reason)
		}
		if err := checkHeader(path); test.header && err == nil {
			t.Errorf("%s: not found by the check of the header", test.reason)
		}
	}
	if err := checkDatabase(filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error of a missing file: %v", err)
	}
}

// TestRecordIsDamage: an error of the visitor names the record.
func TestRecordIsDamage(t *testing.T) {
	err := checkDatabase(database(t, 5), func(_ []string, _, _ []byte) error { return errors.New("bad") })
	if found, is := errors.AsType[*damageError](err); !is || found.Reason != reasonRecord {
		t.Errorf("got %v", err)
	}
}

// TestRandomDamage: no damage makes a check panic, and a database that passes the check can be read and written by bbolt.
func TestRandomDamage(t *testing.T) {
	path := database(t, 300)
	intact, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	passed, found := 0, 0
	for range 60 {
		b := append([]byte(nil), intact...)
		for range 1 + random.IntN(3) {
			at := random.IntN(len(b))
			if random.IntN(2) == 0 {
				at = at/4096*4096 + random.IntN(64) // the headers
			}
			b[at] ^= byte(1 << random.IntN(8))
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := checkDatabase(path, nil); err != nil {
			found++
			continue
		}
		passed++
		use(t, path)
	}
	if passed == 0 || found == 0 {
		t.Errorf("%d databases passed, %d did not", passed, found)
	}
}

// use reads all records of a database and rewrites them.
func use(t *testing.T, path string) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, NoSync: true})
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

func FuzzCheckDatabase(f *testing.F) {
	b, err := os.ReadFile(database(f, 3))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "meta.db")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		_ = checkHeader(path)
		_ = checkDatabase(path, checkRecord)
	})
}

func BenchmarkCheckDatabase(b *testing.B) {
	path := database(b, 2000)
	st, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(st.Size())
	for b.Loop() {
		if err := checkDatabase(path, checkRecord); err != nil {
			b.Fatal(err)
		}
	}
}
