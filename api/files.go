package api

import (
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
