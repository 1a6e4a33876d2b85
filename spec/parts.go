package spec

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// maxParts is the maximum number of pods in one file, maxPartNodes that of the values of all of them: replicas multiply both.
const (
	maxParts     = 128
	maxPartNodes = 4 * maxNodes
)

// Part is one of the pods that a file defines: a stream or a list of Kubernetes objects can define several, with the config maps and
// secrets that they use.
type Part struct {
	// Name of the pod; empty: it is not known, because the definition is invalid.
	Name string
	// Pod is the definition; nil: it is invalid. Definitions of the same file are independent of each other.
	Pod *Pod
	// Problems are the errors and warnings of this pod, at their positions in the file.
	Problems Problems

	file   string
	format format
	data   []byte // of the whole file
	only   bool   // the file defines no other pod, and nothing of it is lost
	root   *node
	own    *node // as it is written in a TOML file with others; nil: in no such file
	named  bool
}

// source is a pod of a file before it is decoded.
type source struct {
	root     *node // in the form of a pod file
	written  *node // as it is written, with comments; nil: it is a file of its own, or a manifest
	problems Problems
	changed  bool // the text of the file alone does not define this pod, such as a replica or one with losses
}

// AcceptParts reads a file that may define several pods, like [Options.Accept]. A pod with errors does not keep the others. The problems
// are those of all pods, and of the file as a whole: if one of them is an error, there are no parts. The parts have the order of the file.
func (o Options) AcceptParts(file string, data []byte) ([]Part, Problems) {
	o.read = readEnvFile
	return o.parts(file, data)
}

// ParseParts is [Options.AcceptParts] without reading other files.
func (o Options) ParseParts(file string, data []byte) ([]Part, Problems) {
	return o.parts(file, data)
}

func (o Options) parts(file string, data []byte) ([]Part, Problems) {
	absolute, err := filepath.Abs(file)
	if err != nil {
		return nil, Problems{{Line: 1, Column: 1, Message: "cannot determine the absolute path: " + printable(err.Error())}}.in(file)
	}
	f := formatOf(absolute, data)
	sources, problems, err := readSources(f, data, &o)
	if syntax, is := errors.AsType[*syntaxError](err); is {
		if strings.HasPrefix(syntax.message, "invalid ") || strings.HasPrefix(syntax.message, "key must") {
			syntax = otherFormat(absolute, data, syntax)
		}
		return nil, syntax.problems().in(file)
	}
	if len(problems.Errors()) > 0 {
		return nil, problems.in(file)
	}
	parts := make([]Part, len(sources))
	for i := range sources {
		parts[i] = o.part(absolute, f, &sources[i])
		p := &parts[i]
		p.own = sources[i].written
		p.file, p.data, p.only = file, data, len(sources) == 1 && !sources[i].changed && !o.AllowLoss
	}
	distinct(parts)
	allowed := allowedIn(f, data)
	if o.Lint != nil {
		problems = append(problems, allowed.problems...)
	}
	for i := range parts {
		p := &parts[i]
		p.Problems = allowed.filter(slices.Clone(p.Problems), p.root).in(file)
		if len(p.Problems.Errors()) > 0 {
			p.Pod = nil
		}
		for _, problem := range p.Problems {
			if !slices.Contains(problems, problem) { // replicas have the same ones
				problems = append(problems, problem)
			}
		}
	}
	return parts, o.oneWarning(problems).in(file)
}

// distinct adds the errors of pods that cannot be in one file: those of the same name, and those that units start.
func distinct(parts []Part) {
	seen := map[string]bool{}
	for i := range parts {
		p := &parts[i]
		if p.Name != "" && seen[p.Name] {
			at := cmp.Or(p.root.child("name"), p.root)
			p.Problems = append(p.Problems, problemAt(at, "Duplicate value: pod "+quote(p.Name)+" is already defined in this file", ""))
		}
		seen[p.Name] = true
		if unit := p.root.child("systemd"); unit != nil && len(parts) > 1 {
			p.Problems = append(p.Problems, problemAt(unit, "Forbidden: the unit of a pod needs a file that defines this pod only",
				"write the pod into a file of its own"))
		}
	}
}

// readSources returns the pods of a file. The error is a [*syntaxError].
func readSources(f format, data []byte, o *Options) ([]source, Problems, error) {
	if len(data) > maxFileBytes {
		return nil, nil, tooLarge
	}
	if f != formatTOML {
		return readStream(data, o)
	}
	root, syntax := readTOML(data)
	if syntax != nil {
		return nil, nil, syntax
	}
	if root.child(podsKey) != nil {
		sources, problems := readPods(root, data)
		return sources, problems, nil
	}
	return []source{{root: root}}, nil, nil
}

// part decodes and checks a pod.
func (o *Options) part(absolute string, f format, s *source) Part {
	root := s.root
	problems := slices.Concat(s.problems, expand(root, f), o.dropTokens(root))
	serviceAccountAlias(root)
	if o.Interactive != nil {
		o.Interactive.set(root)
	}
	d := &decoder{at: map[any]*node{}, format: f, allowLoss: o.AllowLoss, forCluster: o.forCluster}
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
	named := root.child("name") != nil
	(&defaulter{pod: pod, root: root}).run(fileName)
	v := &validator{decoder: d, pod: pod, root: root, hasEnvFiles: o.read != nil}
	v.run()
	if o.Archives {
		v.archives()
	}
	if f == formatTOML {
		problems = append(problems, misplaced(root)...)
	}
	if o.Lint != nil && len(problems.Errors())+len(d.problems.Errors()) == 0 {
		(&linter{v, o.Lint}).run()
	}
	p := Part{Pod: pod, Problems: slices.Concat(problems, d.problems), format: f, root: root, named: named}
	if at := root.child("name"); len(dnsSubdomain(pod.Name)) == 0 && (at == nil || !at.failed) {
		p.Name = pod.Name
	}
	return p
}

// Problem returns an error about a field of the pod, such as containers[0].securityContext.runAsNonRoot. The position is that of the field
// or, if the file does not set it, of what contains it.
func (p *Part) Problem(field, message, hint string) Problem {
	n, rest := p.root, field
	for rest != "" {
		name := strings.TrimPrefix(rest, ".")
		length := strings.IndexAny(name, ".[")
		if strings.HasPrefix(name, "[") {
			length = strings.IndexByte(name, ']') + 1
		}
		if length < 0 {
			length = len(name)
		}
		next := n.child(name[:length])
		if i, err := strconv.Atoi(strings.Trim(name[:length], "[]")); err == nil && n.kind == kindArray && i < len(n.items) {
			next = n.items[i]
		}
		if next == nil {
			break
		}
		n, rest = next, name[length:]
	}
	problem := problemAt(n, message, hint)
	if rest != "" && problem.Path != "" && !strings.HasPrefix(rest, "[") {
		rest = "." + strings.TrimPrefix(rest, ".")
	}
	problem.Path += rest
	return Problems{problem}.in(p.file)[0]
}

// Text returns the text of a pod file that defines this pod alone, in the format of the file: the file itself if it defines no other pod.
// The error is of type [Problems]. The pod must be valid.
func (p *Part) Text() ([]byte, error) {
	if p.only {
		return p.data, nil
	}
	if p.own != nil {
		return writeTOML(p.own), nil
	}
	text, err := writePod(p.format, p.root)
	if err != nil {
		at := p.root.at
		return nil, Problems{{Line: at.line, Column: at.column, Message: fmt.Sprintf("pod %s: %v", quote(p.Name), err)}}.in(p.file)
	}
	return text, nil
}

// Own returns the part with a name of a file, as a file of its own: the text of the file if it defines no other pod. It is for a pod
// whose file is about to be changed. The error is of type [Problems] if the file is invalid, and otherwise names the pod.
func Own(file string, data []byte, pod string) ([]byte, error) {
	parts, problems := Options{MaxReplicas: MaxReplicas}.ParseParts(file, data)
	for i := range parts {
		if p := &parts[i]; p.Name == pod && (p.Pod != nil || p.only) {
			return p.Text()
		}
	}
	if len(parts) <= 1 { // it is as the caller has it
		return data, nil
	}
	if errs := problems.Errors(); len(errs) > 0 {
		return nil, errs
	}
	return nil, fmt.Errorf("file %s does not define pod %q", file, pod)
}

const severalHint = "run podstead apply FILE, which takes each pod for itself"

// onlyPart returns the pod of a file that must define one.
func onlyPart(parts []Part, problems Problems) (*Part, Problems) {
	switch {
	case len(parts) == 1:
		return &parts[0], problems
	case len(parts) == 0:
		return nil, problems
	}
	names := make([]string, len(parts))
	for i := range parts {
		names[i] = cmp.Or(parts[i].Name, "?")
	}
	at := parts[1].root.at
	return nil, append(problems, Problem{
		Line: at.line, Column: at.column, Message: "file defines several pods: " + clip(strings.Join(names, ", ")),
		Hint: severalHint,
	}).in(parts[0].file)
}
