package quadlet

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/podstead/podstead/spec"
)

// Extensions are those of units, each with the section that makes a file one.
var Extensions = map[string]string{
	".container": "Container", ".pod": "Pod", ".volume": "Volume", ".network": "Network", ".kube": "Kube", ".image": "Image",
	".build": "Build", ".artifact": "Artifact",
}

// Limits of a conversion. A directory below another one is read up to maxDepth. The size of a unit counts with its drop-ins.
const (
	maxUnits     = 256
	maxDropIns   = 256
	maxDepth     = 8
	maxUnitBytes = 128 << 10
	maxAllBytes  = 1 << 20
)

// unit is a unit file with its drop-ins.
type unit struct {
	name, kind string // web@blue.container, container
	base       string // web@blue
	instance   string // blue; empty: it is no instance
	path, dir  string // absolute, dir is that of path
	shown      string // path as the user has it
	entries    []entry
	arguments  []argument // options of PodmanArgs= that have no key
	bytes      int64
}

// loader reads units, and collects what is wrong with them.
type loader struct {
	units    []*unit
	full     bool // there are more than maxUnits, or they are larger than maxAllBytes
	bytes    int64
	problems spec.Problems
}

func (l *loader) fail(file, message, hint string) {
	l.problems = append(l.problems, spec.Problem{File: file, Line: 1, Column: 1, Message: message, Hint: hint})
}

// load reads files and directories.
func (l *loader) load(paths []string) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			before := len(l.units) + len(l.problems)
			l.directory(path, 0)
			if before == len(l.units)+len(l.problems) {
				l.fail(path, "the directory has no units", "")
			}
			continue
		}
		l.file(path)
	}
	l.templates()
	seen := map[string]string{}
	l.units = slices.DeleteFunc(l.units, func(u *unit) bool {
		other, is := seen[u.name]
		if is && other != u.path {
			l.fail(u.shown, "unit "+u.name+" is already defined in "+clip(other), "")
		}
		seen[u.name] = u.path
		return is
	})
}

// directory reads the units of a directory and of those below it. It does not follow symbolic links to directories, which could form loops.
func (l *loader) directory(path string, depth int) {
	entries, err := os.ReadDir(path)
	if err != nil {
		l.fail(path, "cannot read the directory: "+cause(err), "")
		return
	}
	for _, e := range entries {
		child := filepath.Join(path, e.Name())
		switch {
		case l.full || len(l.problems) > maxUnits:
			return
		case e.IsDir() && !strings.HasSuffix(e.Name(), ".d") && depth < maxDepth:
			l.directory(child, depth+1)
		case Extensions[filepath.Ext(e.Name())] != "" && !e.IsDir() && e.Name()[0] != '.' && !isMasked(child):
			l.file(child)
		}
	}
}

// isMasked reports whether a file is a link to /dev/null, by which systemd disables it.
func isMasked(path string) bool {
	target, err := os.Readlink(path)
	return err == nil && target == os.DevNull
}

// file reads a unit. web@blue.container is read from web@.container if it does not exist.
func (l *loader) file(path string) {
	if len(l.units) >= maxUnits {
		if !l.full {
			l.fail(path, fmt.Sprintf("more than %d units", maxUnits), "convert them in several calls")
		}
		l.full = true
		return
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		l.fail(path, "cannot determine the absolute path: "+err.Error(), "")
		return
	}
	u := newUnit(path, absolute)
	if u.kind == "" {
		l.fail(path, "not a unit of Quadlet: the extension must be one of "+strings.Join(slices.Sorted(maps.Keys(Extensions)), ", "), "")
		return
	}
	source := path
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) && u.instance != "" {
		prefix, _, _ := strings.Cut(u.base, "@")
		source = filepath.Join(filepath.Dir(path), prefix+"@."+u.kind)
	}
	if l.read(u, source) {
		l.dropIns(u)
		l.units = append(l.units, u)
	}
}

func newUnit(path, absolute string) *unit {
	u := &unit{name: filepath.Base(path), path: absolute, dir: filepath.Dir(absolute), shown: path}
	extension := filepath.Ext(u.name)
	u.base = strings.TrimSuffix(u.name, extension)
	if Extensions[extension] != "" && u.base != "" {
		u.kind = extension[1:]
	}
	_, u.instance, _ = strings.Cut(u.base, "@")
	return u
}

// read adds the entries of a file.
func (l *loader) read(u *unit, path string) bool {
	if l.full {
		return false
	}
	text, _, err := spec.ReadFile(path, maxUnitBytes)
	if err != nil {
		l.fail(path, "cannot read the file: "+cause(err), "")
		return false
	}
	u.bytes += int64(len(text))
	if l.bytes += int64(len(text)); l.bytes > maxAllBytes {
		l.full = true
		l.fail(path, fmt.Sprintf("the units are larger than %d bytes", maxAllBytes), "convert them in several calls")
		return false
	}
	if u.bytes > maxUnitBytes {
		l.fail(path, fmt.Sprintf("the unit is larger than %d bytes with its drop-ins", maxUnitBytes), "")
		return false
	}
	entries, problems := parse(path, text)
	l.problems = append(l.problems, problems...)
	u.entries = append(u.entries, entries...)
	return true
}

// cause returns an error without the path, which the problem has.
func cause(err error) string {
	if at, is := errors.AsType[*fs.PathError](err); is {
		return at.Err.Error()
	}
	return err.Error()
}

// dropIns adds the entries of the drop-ins of a unit, in the order of their names. One in a more specific directory replaces that of the
// same name in another one.
func (l *loader) dropIns(u *unit) {
	files := map[string]string{}
	for _, name := range dropInDirectories(u) {
		directory := filepath.Join(filepath.Dir(u.shown), name)
		entries, err := os.ReadDir(directory)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			l.fail(directory, "cannot read the directory: "+cause(err), "")
			continue
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".conf") && e.Name()[0] != '.' {
				files[e.Name()] = filepath.Join(directory, e.Name())
			}
		}
	}
	if len(files) > maxDropIns {
		l.fail(u.shown, fmt.Sprintf("more than %d drop-ins", maxDropIns), "")
		return
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !isMasked(files[name]) {
			l.read(u, files[name])
		}
	}
}

// dropInDirectories are the directories of drop-ins of a unit, the most general one first: container.d, a-.container.d,
// a-b.container.d, and for an instance that of its template before its own.
func dropInDirectories(u *unit) []string {
	extension := "." + u.kind
	list := []string{u.kind + ".d"}
	prefix, _, isInstance := strings.Cut(u.base, "@")
	for i := range len(prefix) {
		if prefix[i] == '-' && i+1 < len(prefix) {
			list = append(list, prefix[:i+1]+extension+".d")
		}
	}
	if isInstance {
		list = append(list, prefix+"@"+extension+".d")
	}
	if u.instance != "" || !isInstance {
		list = append(list, u.name+".d")
	}
	return list
}

// templates replaces templates by their default instance. A template without one defines nothing, if there are instances of it.
func (l *loader) templates() {
	for i, u := range l.units {
		if !strings.HasSuffix(u.base, "@") {
			continue
		}
		if e, has := u.last("Install", "DefaultInstance"); has && e.value != "" {
			name := u.base + e.value + "." + u.kind
			instance := newUnit(filepath.Join(filepath.Dir(u.shown), name), filepath.Join(u.dir, name))
			instance.entries = u.entries
			l.units[i] = instance
			continue
		}
		isInstance := func(other *unit) bool {
			return other != u && other.kind == u.kind && strings.HasPrefix(other.base, u.base)
		}
		if !slices.ContainsFunc(l.units, isInstance) {
			l.fail(u.shown, "the template has no instance", "pass an instance of it, such as "+u.base+"NAME."+u.kind)
		}
	}
	l.units = slices.DeleteFunc(l.units, func(u *unit) bool { return strings.HasSuffix(u.base, "@") })
}

// all returns the assignments of a key. An empty one removes those before it.
func (u *unit) all(section, key string) []entry {
	var list []entry
	for _, e := range u.entries {
		switch {
		case e.section != section || e.key != key:
		case e.value == "" && e.argument == nil:
			list = nil
		default:
			list = append(list, e)
		}
	}
	return list
}

// last returns the assignment that counts of a key that has one value.
func (u *unit) last(section, key string) (entry, bool) {
	list := u.all(section, key)
	if len(list) == 0 {
		return entry{}, false
	}
	return list[len(list)-1], true
}

// section is the one that makes the file a unit of its kind.
func (u *unit) section() string { return Extensions["."+u.kind] }

// service returns the name of the service that Quadlet generates, without its extension.
func (u *unit) service() string {
	if e, has := u.last(u.section(), "ServiceName"); has {
		return e.value
	}
	switch u.kind {
	case "container", "kube":
		return u.base
	}
	prefix, instance, isInstance := strings.Cut(u.base, "@")
	if isInstance {
		return prefix + "-" + u.kind + "@" + instance
	}
	return u.base + "-" + u.kind
}

// pathName is the part of the name that %f has: the instance, or the prefix.
func (u *unit) pathName(prefix string) string { return cmp.Or(u.instance, prefix) }
