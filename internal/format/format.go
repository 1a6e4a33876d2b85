// Package format gives the files that outlive the daemon a version, and keeps what a later version added to them.
//
// A file is a JSON object that begins with its version. A version that only adds fields sets MinReader to the version that it adds
// them to: earlier readers use the file and write unknown fields back. A version that changes the meaning of a field raises
// MinReader too: earlier readers leave the file alone. The package does not access files.
package format

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
// a version.
func (f Format) Check(data []byte) error {
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

// Decode checks the version of a file and reads it into the struct that v points to. It returns the fields that v does not have.
func (f Format) Decode(data []byte, v any) (Unknown, error) {
	if err := f.Check(data); err != nil {
		return Unknown{}, err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return Unknown{}, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return Unknown{}, err
	}
	for _, name := range []string{"version", "minReader"} {
		delete(members, name)
	}
	return Unknown{object(members, reflect.TypeOf(v).Elem())}, nil
}

// Encode returns a file with the fields of a struct and the unknown fields of the file that it replaces.
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
	return bytes.Join([][]byte{first[:len(first)-1], data[1:]}, []byte(",")), nil
}
