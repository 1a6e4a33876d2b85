// Package statefile is the format of the files that outlive the daemon: a version, a checksum, and what a later version added. It reads
// and writes them, and sets damaged ones aside. What a file means, and what follows if it is lost, is decided by the package that has it.
//
// A file is a JSON object that begins with its version and ends with its checksum. A version that only adds fields sets MinReader to the
// version that it adds them to: earlier readers use the file and write unknown fields back. A version that changes the meaning of a field
// raises MinReader too: earlier readers leave the file alone.
package statefile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// Format is a kind of file.
type Format struct {
	// Version is the version that this binary writes. It reads all versions up to it.
	Version int
	// MinReader is the lowest version whose readers understand what this binary writes. 0: Version.
	MinReader int
	// Unversioned is set if files without a version exist. They are version 0.
	Unversioned bool
	// Migrate turns the content of an earlier version into that of this one. It is called for all files, also damaged ones. nil: the
	// fields of earlier versions are a part of those of this version.
	Migrate func(text []byte) []byte
	// Loss is what a loss of power may do to the file.
	Loss Loss
	// Aside is added to the name of a damaged file by [Format.SetAside].
	Aside string
}

// Array is a [Format.Migrate] for files that were an array, which is now the member of a name.
func Array(name string) func(text []byte) []byte {
	return func(text []byte) []byte {
		if !bytes.HasPrefix(text, []byte("[")) {
			return text
		}
		return fmt.Appendf(nil, `{%q:%s}`, name, text)
	}
}

// ErrNewer reports a file that only later versions understand. It must be neither changed nor deleted.
var ErrNewer = errors.New("written by a later version")

var errNoVersion = errors.New("the file has no version")

// head is the first part of every file.
type head struct {
	Version   int `json:"version"`
	MinReader int `json:"minReader,omitempty"`
}

// Check returns an error that matches [ErrNewer] if this binary does not understand a file. Another error means that data is no file with
// a version, or that it is damaged.
func (f Format) Check(data []byte) error {
	if f.Migrate != nil {
		data = f.Migrate(data)
	}
	return f.check(data)
}

func (f Format) check(data []byte) error {
	if err := checkSum(data); err != nil {
		return err
	}
	var h head
	if err := json.Unmarshal(data, &h); err != nil {
		return err
	}
	needed := h.Version
	if h.MinReader > 0 {
		needed = min(h.MinReader, h.Version)
	}
	switch {
	case needed > f.Version:
		return fmt.Errorf("%w: the file has version %d, at most %d is supported", ErrNewer, h.Version, f.Version)
	case h.Version < 0, h.Version == 0 && !f.Unversioned:
		return errNoVersion
	}
	return nil
}

// Decode checks a file as [Format.Check] does, and reads it into the struct that v points to. It returns the fields that v does not have.
func (f Format) Decode(data []byte, v any) (Unknown, error) {
	if f.Migrate != nil {
		data = f.Migrate(data)
	}
	if err := f.check(data); err != nil {
		return Unknown{}, err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return Unknown{}, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return Unknown{}, err
	}
	for _, name := range []string{"version", "minReader", sumName} {
		delete(members, name)
	}
	return Unknown{object(members, reflect.TypeOf(v).Elem())}, nil
}

// Encode returns a file with the fields of a struct and the unknown fields of the file that it replaces. A file without fields has no
// checksum.
func (f Format) Encode(v any, unknown Unknown) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	if unknown.root != nil {
		if data, err = merge(data, unknown.root); err != nil {
			return nil, err
		}
	}
	first, err := f.head()
	if err != nil || string(data) == "{}" {
		return first, err
	}
	return addSum(bytes.Join([][]byte{first[:len(first)-1], data[1:]}, []byte(","))), nil
}
