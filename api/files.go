package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// FileStat describes a file of a container.
type FileStat struct {
	// Path is the absolute path, with the final symbolic links resolved. It can be any bytes.
	Path []byte `json:"path"`
	// Type is file, directory or other.
	Type FileType `json:"type"`
	// Mode has the permission bits.
	Mode    uint32    `json:"mode"`
	Size    int64     `json:"size"`
	ModTime time.Time `json:"modTime"`
}

// FileType is the type of a file.
type FileType string

// The types of files.
const (
	RegularFile FileType = "file"
	Directory   FileType = "directory"
	OtherFile   FileType = "other"
)

// CopyResult is the result of a copy.
type CopyResult struct {
	// Files and Bytes are what was written to the container.
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
	// Warnings are about files that were left out or that changed during the copy.
	Warnings []string `json:"warnings,omitempty"`
}

// CopyEnd is the end of a response with files.
type CopyEnd struct {
	Error    *Error   `json:"error,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// MaxTrailer is the maximum size of the trailer. The client of net/http accepts 4 KiB for all trailers.
const MaxTrailer = 3 << 10

// Trailer returns the trailer. Warnings that have no room are counted, and a long message is cut.
func (e CopyEnd) Trailer() ([]byte, error) {
	for dropped := 0; ; dropped++ {
		shown := e
		if dropped > 0 && len(e.Warnings) > 0 {
			more := fmt.Sprintf("%d more warnings", min(dropped, len(e.Warnings)))
			shown.Warnings = append(slices.Clone(e.Warnings[:max(0, len(e.Warnings)-dropped)]), more)
		}
		if shown.Error != nil && dropped > len(e.Warnings) {
			cut := *shown.Error
			size := min(len(cut.Message), MaxTrailer/(dropped-len(e.Warnings)+6))
			cut.Message, cut.Hint = strings.ToValidUTF8(cut.Message[:size], "")+"…", ""
			shown.Error = &cut
		}
		if text, err := json.Marshal(shown); err != nil || len(text) <= MaxTrailer {
			return text, err
		}
	}
}

// Volume is a persistent volume of this host, with the pods that use it.
type Volume struct {
	Name string   `json:"name"`
	Pods []string `json:"pods,omitempty"` // that use it, sorted
	// Project is the label project of the pod that has created the volume; empty: not known, or none.
	Project string `json:"project,omitempty"`
}

// VolumeList is the list of persistent volumes.
type VolumeList struct {
	Items []Volume `json:"items"`
}
