package event

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
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/podstead/podstead/api"
	"github.com/podstead/podstead/internal/atomicfile"
	"github.com/podstead/podstead/internal/lazyregexp"
	"github.com/podstead/podstead/internal/order"
	"github.com/podstead/podstead/internal/statefile"
	"github.com/podstead/podstead/spec"
)

const (
	// maxJournal is the size in bytes at which a file of the journal is rotated. A pod has at most two files, which is a few hundred
	// events.
	maxJournal = 64 << 10
	// maxRemoved is for how many names of removed pods the files are kept.
	maxRemoved = 32
	// maxRuns is how many of them are runs of one schedule at most: others would have no room beside a run each minute.
	maxRuns = 8
	// maxLine is the maximum length of an event in bytes. Longer events are not stored.
	maxLine = 32 << 10

	// maxVersionLine limits the line with the version, and the newline before it, in bytes.
	maxVersionLine = 64

	journalExt = ".jsonl"
	rotatedExt = "~1" + journalExt // names of pods do not contain "~"
	// others is the file for events without a pod, and for pods whose name cannot be a file name.
	others = "_others"
)

// Format is the format of the lines that follow a line with this version. A daemon writes that line before its first event.
var Format = statefile.Format{Version: 1, Unversioned: true}

// journalName matches the pod names that can be file names.
var journalName = lazyregexp.New(`^[a-z0-9][a-z0-9.-]*$`)

// runName matches the names of runs of a schedule, see [spec.Pod.Run]. The first group is the name of the pod with the schedule.
var runName = lazyregexp.New(`^(.+?)(-manual)?-[0-9]{7,}$`)

// DirJournal is a [Journal] in a directory. It has one file per pod name, with one JSON object per line, and one rotated file. Writes are
// not synced, but a file is synced before it is rotated. A line that a power failure has truncated is ignored. Lines that only a later
// version understands are kept until they are rotated out, and replaced with an event that reports them.
type DirJournal struct {
	dir     string
	version []byte // the line with the version

	mu    sync.Mutex
	sizes map[string]int64 // of the current files that were written to, by name
}

// NewDirJournal returns a journal in the directory, which it creates if needed.
func NewDirJournal(dir string) (*DirJournal, error) {
	version, err := Format.Encode(struct{}{}, statefile.Unknown{})
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create journal directory: %w", err)
	}
	return &DirJournal{dir: dir, version: append(version, '\n'), sizes: map[string]int64{}}, nil
}

// fileOf returns the name of the file for a pod, without extension.
func fileOf(pod string) string {
	if !journalName.MatchString(pod) {
		return others
	}
	return spec.FileName(pod)
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
	order.Sort(all, bySeq)
	return all, errors.Join(errs...)
}

func bySeq(a, b Event) int { return cmp.Compare(a.Seq, b.Seq) }

// Read implements [Journal].
func (j *DirJournal) Read(pod string) ([]Event, error) {
	events, err := j.read(fileOf(pod))
	return slices.DeleteFunc(events, func(e Event) bool { return e.Pod != pod }), err
}

// read returns the events in the files of a name, ordered by Seq and without duplicates.
func (j *DirJournal) read(name string) ([]Event, error) {
	var events []Event
	var errs []error
	for _, ext := range []string{rotatedExt, journalExt} {
		text, err := readUpTo(filepath.Join(j.dir, name+ext), 2*maxJournal)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("read journal of %s: %w", name, err))
		}
		events = append(events, j.parse(filepath.Join(j.dir, name+ext), text)...)
	}
	return Merge(events, nil), errors.Join(errs...)
}

// parse returns the events in the text of a file.
func (j *DirJournal) parse(path string, text []byte) (events []Event) {
	var newer error // the version of the lines is not supported
	var skipped Event
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		var e Event
		if len(line) == 0 || json.Unmarshal(line, &e) != nil {
			continue
		}
		switch {
		case e.Seq == 0 && bytes.Contains(line, []byte(`"version"`)):
			if err := Format.Check(line); err == nil || errors.Is(err, statefile.ErrNewer) {
				newer = err
			}
		case e.Seq == 0:
		case newer != nil:
			// Its numbers must not be used again: the later version would drop one of two events.
			fields := Fields{"file": path, "error": newer.Error()}
			skipped = New(api.EventStateUnsupported, e.Time, e.Pod, fields)
			skipped.Seq = e.Seq
		case e.Kind != "":
			events = append(events, e)
		}
	}
	if skipped.Seq > 0 {
		events = append(events, skipped)
	}
	return events
}

// readUpTo reads the first limit bytes of a file.
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
		if err := j.append(name, newestLines(text, maxJournal-maxVersionLine)); err != nil {
			errs = append(errs, fmt.Errorf("write journal of %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// newestLines returns the last lines of a text that fit into limit bytes.
func newestLines(text []byte, limit int) []byte {
	if len(text) <= limit {
		return text
	}
	text = text[len(text)-limit-1:] // begins with the newline of the previous line if the limit is at a line boundary
	return text[bytes.IndexByte(text, '\n')+1:]
}

func (j *DirJournal) append(name string, text []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	path := filepath.Join(j.dir, name+journalExt)
	size, cached := j.sizes[name]
	if st, err := os.Stat(path); !cached && err == nil {
		size = st.Size()
		text = slices.Concat([]byte{'\n'}, j.version, text) // ends a line that a crash may have truncated
	} else if !cached {
		text = slices.Concat(j.version, text)
	}
	if size > 0 && size+int64(len(text)) > maxJournal {
		if err := j.rotate(name); err != nil {
			return err
		}
		if cached {
			text = slices.Concat(j.version, text)
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
		delete(j.sizes, name) // a truncated line may have been written
	}
	return errors.Join(err, f.Close())
}

// rotate renames the current file of a name. It syncs the file first, so that a power failure cannot lose both files.
func (j *DirJournal) rotate(name string) error {
	delete(j.sizes, name)
	path := filepath.Join(j.dir, name+journalExt)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = errors.Join(f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(path, filepath.Join(j.dir, name+rotatedExt))
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
	order.Sort(names, func(a, b journalFile) int { return b.changed.Compare(a.changed) })
	kept, runs := 0, map[string]int{}
	names = slices.DeleteFunc(names, func(f journalFile) bool {
		if run := runName.FindStringSubmatch(f.name); run != nil {
			if runs[run[1]]++; runs[run[1]] > maxRuns {
				return false
			}
		}
		kept++
		return kept <= maxRemoved
	})
	var errs []error
	for _, f := range names {
		for _, ext := range []string{rotatedExt, journalExt} {
			if err := os.Remove(filepath.Join(j.dir, f.name+ext)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
		delete(j.sizes, f.name)
	}
	return errors.Join(errs...)
}

// journalFile is a name that has one or two files.
type journalFile struct {
	name    string
	changed time.Time
}

// names returns all names that have files.
func (j *DirJournal) names() ([]journalFile, error) {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return nil, fmt.Errorf("read journal directory: %w", err)
	}
	found := map[string]time.Time{}
	for _, entry := range entries {
		name, isJournal := strings.CutSuffix(entry.Name(), journalExt)
		if !isJournal || !entry.Type().IsRegular() {
			continue
		}
		name, _ = strings.CutSuffix(name, strings.TrimSuffix(rotatedExt, journalExt))
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
