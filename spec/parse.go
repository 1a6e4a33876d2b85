package spec

import (
	"fmt"
	"io/fs"
)

// Parse reads a pod file or, if the name of file ends in .yaml, .yml or .json,
// a Pod manifest. It does not open file: the name is for messages and for
// relative paths, which are relative to its directory. The pod is nil if one of
// the problems is an error. Parse is safe for concurrent use.
func Parse(file string, data []byte) (*Pod, Problems) {
	return parse(file, data, Options{})
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
	// AllowLoss makes warnings of the errors about what a file requests and Podstead does not have. The rest is taken.
	AllowLoss bool
	// Verbose reports also what a cluster has added to an object, which is dropped without a warning otherwise.
	Verbose bool
	// Lint reports also what is valid and cannot work well; nil: it does not. [Codes] has the warnings.
	Lint *Lint
	// Others are files that are read together with this one, such as those of the same directory. Its pods use their ConfigMaps, Secrets
	// and Services. A file without pods is valid then.
	Others []OtherFile
	// MaxReplicas is the maximum number of pods of one object, such as a Deployment; 0: the default.
	MaxReplicas int

	// forCluster keeps the fields that only a cluster uses, for [Options.Manifests].
	forCluster bool

	read  reader
	edits *[]edit // receives what Relocate replaces
	named *bool   // receives whether the text has the name of the pod
	// archives receives the values of imageArchives.
	archives *[]*node
}

// reader reads an env file. With a nil reader, env files are not read.
type reader func(path string) ([]byte, fs.FileMode, error)

// parse reads a file that must define one pod.
func parse(file string, data []byte, o Options) (*Pod, Problems) {
	part, problems := onlyPart(o.parts(file, data))
	if part == nil {
		return nil, problems
	}
	if o.named != nil {
		*o.named = part.named
	}
	return part.Pod, problems
}

func (d *decoder) hashes(root *node, pod *Pod) {
	pod.Hash = hash(root)
	for c := range pod.EveryContainer() {
		c.Hash = hash(d.at[c])
	}
}
