package supervisor

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podstead/podstead/internal/atomicfile"
)

const (
	// maxJournal is the size of a file of the journal at which it makes room for another. A pod has two at most: that is a
	// few hundred events.
	maxJournal = 64 << 10
	// maxForgotten is how many names of pods that are gone have files.
	maxForgotten = 32
	// maxLine is what an event can have. Longer lines are none.
	maxLine = 32 << 10

	journalExt = ".jsonl"
	olderExt   = ".1" + journalExt
	// others has the events of no pod, or of one whose name cannot be that of a file.
	others = "_others"
)

// journalName is what a pod's name must be to be that of a file.
var journalName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,200}$`)

// DirJournal is a [Journal] of one file for each name of a pod, and an older one, in one folder: a JSON object a line.
// Nothing waits until it is on the disk, but an older file is whole before the newer one begins. A line that a loss of
// power has broken is no event, and the next one begins after it.
type DirJournal struct {
	dir string

	mu    sync.Mutex
	sizes map[string]int64 // of the newer file of a name that was written to or looked at
}

// NewDirJournal returns a journal in the folder, which it makes.
func NewDirJournal(dir string) (*DirJournal, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make folder of the journal: %w", err)
	}
	return &DirJournal{dir: dir, sizes: map[string]int64{}}, nil
}

func fileOf(pod string) string {
	if !journalName.MatchString(pod) {
		return others
	}
	return pod
}

// Load implements [Journal].
func (j *DirJournal) Load() ([]Event, error) {
	names, err := j.names()
	if err != nil {
		return nil, err
	}
	var all []Event
	var errs []error
	for _, n := range names {
		events, err := j.read(n.name)
		all, errs = append(all, events...), append(errs, err)
	}
	slices.SortStableFunc(all, bySeq)
	return all, errors.Join(errs...)
}

func bySeq(a, b Event) int { return cmp.Compare(a.Seq, b.Seq) }

// Read implements [Journal].
func (j *DirJournal) Read(pod string) ([]Event, error) {
	events, err := j.read(fileOf(pod))
	return slices.DeleteFunc(events, func(e Event) bool { return e.Pod != pod }), err
}

// read returns the events of a name, each once, in the order of their numbers.
func (j *DirJournal) read(name string) ([]Event, error) {
	var events []Event
	var errs []error
	for _, ext := range []string{olderExt, journalExt} {
		text, err := readUpTo(filepath.Join(j.dir, name+ext), 2*maxJournal)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("read journal of %s: %w", name, err))
		}
		for line := range bytes.SplitSeq(text, []byte("\n")) {
			var e Event
			if len(line) > 0 && json.Unmarshal(line, &e) == nil && e.Seq > 0 && e.Kind != "" {
				events = append(events, e)
			}
		}
	}
	return merge(events, nil), errors.Join(errs...)
}

// readUpTo reads a file, of which no more than limit bytes can be anything of ours.
func readUpTo(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, limit))
	return text, errors.Join(err, f.Close())
}

// Append implements [Journal].
func (j *DirJournal) Append(events []Event) error {
	lines := map[string][]byte{}
	for _, e := range events {
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("encode event: %w", err)
		}
		if name := fileOf(e.Pod); len(line) <= maxLine {
			lines[name] = append(append(lines[name], line...), '\n')
		}
	}
	var errs []error
	for name, text := range lines {
		if err := j.append(name, newestLines(text, maxJournal-1)); err != nil {
			errs = append(errs, fmt.Errorf("write journal of %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// newestLines are the last lines of a text that fit into a number of bytes.
func newestLines(text []byte, limit int) []byte {
	if len(text) <= limit {
		return text
	}
	text = text[len(text)-limit-1:] // with the end of the line before, if it is one
	return text[bytes.IndexByte(text, '\n')+1:]
}

func (j *DirJournal) append(name string, text []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	path := filepath.Join(j.dir, name+journalExt)
	size, known := j.sizes[name]
	if st, err := os.Stat(path); !known && err == nil {
		size = st.Size()
		text = append([]byte{'\n'}, text...) // behind what a crash may have left of a line
	}
	if size > 0 && size+int64(len(text)) > maxJournal {
		if err := j.turn(name); err != nil {
			return err
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if st, statErr := f.Stat(); statErr == nil {
		j.sizes[name] = st.Size()
	}
	if err != nil {
		delete(j.sizes, name) // a part of a line may be there
	}
	return errors.Join(err, f.Close())
}

// turn makes the newer file of a name the older one. It is on the disk before that, so that a loss of power cannot take both.
func (j *DirJournal) turn(name string) error {
	delete(j.sizes, name)
	path := filepath.Join(j.dir, name+journalExt)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = errors.Join(f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path, filepath.Join(j.dir, name+olderExt))
	}
	if err == nil {
		err = atomicfile.SyncDir(j.dir)
	}
	return err
}

// Retain implements [Journal].
func (j *DirJournal) Retain(pods []string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	names, err := j.names()
	if err != nil {
		return err
	}
	present := map[string]bool{others: true}
	for _, pod := range pods {
		present[fileOf(pod)] = true
	}
	names = slices.DeleteFunc(names, func(f journalFile) bool { return present[f.name] })
	slices.SortFunc(names, func(a, b journalFile) int { return b.changed.Compare(a.changed) })
	var errs []error
	for _, f := range names[min(maxForgotten, len(names)):] {
		for _, ext := range []string{olderExt, journalExt} {
			if err := os.Remove(filepath.Join(j.dir, f.name+ext)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
		delete(j.sizes, f.name)
	}
	return errors.Join(errs...)
}

// journalFile is a name that has files.
type journalFile struct {
	name    string
	changed time.Time
}

// names are those that have a newer file, or an older one alone.
func (j *DirJournal) names() ([]journalFile, error) {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, fmt.Errorf("read folder of the journal: %w", err)
	}
	found := map[string]time.Time{}
	for _, entry := range entries {
		name, ours := strings.CutSuffix(entry.Name(), journalExt)
		if !ours || !entry.Type().IsRegular() {
			continue
		}
		name, _ = strings.CutSuffix(name, strings.TrimSuffix(olderExt, journalExt))
		if st, err := entry.Info(); err == nil && st.ModTime().After(found[name]) {
			found[name] = st.ModTime()
		}
	}
	var files []journalFile
	for name, changed := range found {
		files = append(files, journalFile{name, changed})
	}
	return files, nil
}
