// Package copyfiles is the client's side of podstead cp: it decides what a copy creates, as cp(1) and docker cp do, and reads and writes
// the files of the host. It trusts nothing in an archive from a container: package filecopy follows no links below the destination.
package copyfiles

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// Place is the source or the destination of a copy.
type Place struct {
	Pod       string // empty: the host
	Container string // empty: the default
	Path      string
	Stream    bool // standard input or output
}

// containerName is the pattern of a name of a container (RFC 1123 label).
var containerName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// Parse reads a place: POD:PATH, default/POD:PATH as in kubectl, POD:CONTAINER:PATH with an absolute path, "-", or a path of the host. A
// path of the host with a colon must start with "/" or ".", or have a "/" before the colon.
func Parse(arg string) (Place, error) {
	if arg == "-" {
		return Place{Stream: true}, nil
	}
	if arg == "" {
		return Place{}, errors.New("a path must not be empty")
	}
	name := arg
	for _, resource := range []string{"pod/", "pods/", "po/", "default/"} {
		name = strings.TrimPrefix(name, resource)
	}
	pod, path, found := strings.Cut(name, ":")
	if !found || pod == "" || strings.HasPrefix(arg, ".") || strings.Contains(pod, "/") {
		return Place{Path: arg}, nil
	}
	p := Place{Pod: pod, Path: path}
	if container, rest, ok := strings.Cut(path, ":"); ok && strings.HasPrefix(rest, "/") && containerName.MatchString(container) {
		p.Container, p.Path = container, rest
	}
	if p.Path == "" {
		return Place{}, fmt.Errorf("%q: a path must follow the colon", arg)
	}
	return p, nil
}

// parts divides a path into its directory and its last element. The element is "." if the content of the directory is meant: for the root,
// and for a path that ends with "." or "..". A slash at the end is ignored.
func parts(path string) (dir, base string) {
	trimmed := strings.TrimRight(path, "/")
	i := strings.LastIndexByte(trimmed, '/')
	dir, base = trimmed[:i+1], trimmed[i+1:]
	switch {
	case base == "" || base == "." || base == "..":
		return path, "."
	case dir == "":
		return ".", base
	}
	return dir, base
}

// hostPath is parts for a path of the host, whose links in the last element are resolved if follow is set.
func hostPath(path string, follow bool) (dir, base string, err error) {
	if follow {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", "", err
		}
	}
	dir, base = parts(path)
	return dir, base, nil
}
