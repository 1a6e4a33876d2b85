package engine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/podstead/podstead/internal/statefile"
)

// DamageReport is a file that was damaged.
type DamageReport struct {
	Time   time.Time `json:"time"`
	File   string    `json:"file"`
	Reason string    `json:"reason"`
	// Aside is the new path of the file; empty if the file was missing.
	Aside string `json:"aside,omitempty"`
	// Container is the ID of the only container that the file belongs to; empty if the file belongs to all.
	Container string `json:"container,omitempty"`
	// Ended is set if running containers were ended because of the damage.
	Ended bool `json:"ended,omitempty"`
}

// DamageFormat is the format of the file with the reports.
var DamageFormat = statefile.Format{Version: 1, Unversioned: true, Migrate: statefile.Array("reports"), Loss: statefile.Ordered}

// reportList is that file. Version 0 was an array.
type reportList struct {
	Reports []DamageReport `json:"reports"`
}

// maxReports is how many reports, and files that were set aside, are kept.
const maxReports = 20

// Journal is a directory with files that were set aside, and the reports about them.
type Journal struct{ Dir string }

// SetAside moves a damaged file to the journal and returns the report. It succeeds if the file is missing.
func (j Journal) SetAside(path, reason, detail string, now time.Time) (DamageReport, error) {
	r := DamageReport{Time: now.UTC(), File: path, Reason: detail}
	if err := os.MkdirAll(j.Dir, 0o700); err != nil {
		return r, fmt.Errorf("set aside %s: %w", path, err)
	}
	name := fmt.Sprintf("%s.%s.%s", filepath.Base(path), now.UTC().Format("20060102T150405.000Z"), reason)
	aside := filepath.Join(j.Dir, name)
	for n := 2; ; n++ {
		if _, err := os.Lstat(aside); err != nil {
			break
		}
		aside = filepath.Join(j.Dir, fmt.Sprintf("%s.%d", name, n))
	}
	err := move(path, aside)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("set aside %s: %w", path, err)
	}
	r.Aside = aside
	return r, nil
}

// move renames a file, or copies it if the directories are on different file systems.
func move(from, to string) error {
	err := os.Rename(from, to)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return errors.Join(err, os.Remove(to))
	}
	return os.Remove(from)
}

// Reports returns the reports, the oldest first.
func (j Journal) Reports() ([]DamageReport, error) {
	var list reportList
	_, err := DamageFormat.Read(j.file(), &list)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if _, io := errors.AsType[*fs.PathError](err); io {
		return nil, err
	}
	if err != nil {
		return nil, &damageError{j.file(), reasonContent, err.Error()}
	}
	return list.Reports, nil
}

// Add adds reports. It deletes the oldest ones together with their files.
func (j Journal) Add(reports []DamageReport) error {
	if len(reports) == 0 {
		return nil
	}
	list, err := j.Reports()
	if _, bad := errors.AsType[*damageError](err); err != nil && !bad {
		return err
	}
	list = append(list, reports...)
	var errs []error
	for len(list) > maxReports {
		if list[0].Aside != "" {
			errs = append(errs, ignoreMissing(os.Remove(list[0].Aside)))
		}
		list = list[1:]
	}
	if err := os.MkdirAll(j.Dir, 0o700); err != nil {
		return errors.Join(append(errs, err)...)
	}
	return errors.Join(append(errs, DamageFormat.Write(j.file(), reportList{list}, statefile.Unknown{}))...)
}

func (j Journal) file() string { return filepath.Join(j.Dir, "reports.json") }
