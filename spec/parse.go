package spec

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
)

// Parse reads a pod file or, if the name of file ends in .yaml, .yml or .json,
// a Pod manifest. It does not open file: the name is for messages and for
// relative paths, which are relative to its directory. The pod is nil if one of
// the problems is an error. Parse is safe for concurrent use.
func Parse(file string, data []byte) (*Pod, Problems) {
	return parse(file, data, unsupported, Options{})
}

// ParseFile reads and parses one file. The error wraps the operating system's
// error if the file cannot be read; everything else is a problem.
func ParseFile(path string) (*Pod, Problems, error) {
	data, err := ReadPodFile(path)
	if err != nil {
		return nil, nil, err
	}
	pod, problems := Parse(path, data)
	return pod, problems, nil
}

// ReadPodFile reads a pod file. More than the maximum size of one is read, so
// that [Parse] reports that.
func ReadPodFile(path string) ([]byte, error) {
	data, _, err := ReadFile(path, 2*maxFileBytes)
	if err != nil {
		return nil, fmt.Errorf("read pod file: %w", err)
	}
	return data, nil
}

// Options are options of [Options.Accept].
type Options struct {
	// Suffix completes metadata.generateName. Default: a random one.
	Suffix string
	// Archives reports image archives that do not exist.
	Archives bool
	// Interactive changes the definition; nil: it is that of the file.
	Interactive *Interactive

	read  reader
	edits *[]edit // receives what Relocate replaces
	named *bool   // receives whether the text has the name of the pod
	tree  **node  // receives the tree, without short forms
	// archives receives the values of imageArchives.
	archives *[]*node
}

// reader reads an env file. With a nil reader, env files are not read.
type reader func(path string) ([]byte, fs.FileMode, error)

// parse takes the pass that rejects unsupported fields as an argument. Tests
// leave it out to cover the validation of those fields.
func parse(file string, data []byte, refuse func(*node) Problems, o Options) (*Pod, Problems) {
	pod, problems := parseTree(file, data, refuse, o)
	problems = problems.in(file)
	if len(problems.Errors()) > 0 {
		pod = nil
	}
	return pod, problems
}

func parseTree(file string, data []byte, refuse func(*node) Problems, o Options) (*Pod, Problems) {
	if len(data) > maxFileBytes {
		return nil, tooLarge.problems()
	}
	absolute, err := filepath.Abs(file)
	if err != nil {
		return nil, Problems{{Line: 1, Column: 1, Message: "cannot determine the absolute path: " + printable(err.Error())}}
	}
	f := formatOf(absolute, data)
	var root *node
	var problems Problems
	var syntax *syntaxError
	if f == formatTOML {
		root, syntax = readTOML(data)
	} else {
		root, problems, syntax = readYAML(data, o)
	}
	if syntax != nil {
		return nil, syntax.problems()
	}
	problems = append(problems, expand(root, f)...)
	problems = append(problems, dropTokens(root)...)
	serviceAccountAlias(root)
	if o.Interactive != nil {
		o.Interactive.set(root)
	}

	if o.tree != nil {
		*o.tree = root
	}

	d := &decoder{at: map[any]*node{}, format: f}
	pod := &Pod{Dir: filepath.Dir(absolute)}
	d.decode(root, reflect.ValueOf(pod).Elem())
	d.resolve(pod, o.edits)
	if o.archives != nil {
		for i := range pod.ImageArchives {
			*o.archives = append(*o.archives, d.at[&pod.ImageArchives[i]])
		}
	}
	if o.read != nil {
		d.envFiles(pod, o.read)
	}
	d.hashes(root, pod)
	fileName := filepath.Base(absolute)
	if fileName = strings.TrimSuffix(fileName, filepath.Ext(fileName)); fileName == Stdin {
		fileName = ""
	}
	if o.named != nil {
		*o.named = root.child("name") != nil
	}
	(&defaulter{pod: pod, root: root}).run(fileName)
	v := &validator{decoder: d, pod: pod, root: root, hasEnvFiles: o.read != nil}
	v.run()
	if o.Archives {
		v.archives()
	}
	if f == formatTOML {
		problems = append(problems, misplaced(root)...)
	}
	return pod, slices.Concat(problems, d.problems, refuse(root))
}

func (d *decoder) hashes(root *node, pod *Pod) {
	pod.Hash = hash(root)
	for c := range pod.everyContainer() {
		c.Hash = hash(d.at[c])
	}
}
