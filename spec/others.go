package spec

import "slices"

// OtherFile is a file that is read together with another one.
type OtherFile struct {
	Path string
	Data []byte
}

// usable are the kinds of objects that pods of other files use.
var usable = []string{"ConfigMap", "Secret", "Service"}

// collectOthers adds the objects of other files that pods use. Files that cannot be read are reported where they are read themselves.
func (s *stream) collectOthers() {
	for _, other := range s.o.Others {
		if len(other.Data) > maxFileBytes || formatOf(other.Path, other.Data) == formatTOML {
			continue
		}
		documents, err := yamlDocuments(other.Data)
		if err != nil {
			continue
		}
		collected, r := &stream{o: &Options{}, data: other.Data}, &yamlReader{}
		for _, document := range documents {
			n := &node{}
			if r.read(n, document) != nil || collected.collect(n, object{}, false) != nil {
				collected.objects = nil
				break
			}
		}
		for _, x := range collected.objects {
			if slices.Contains(usable, x.kind) {
				x.file = printable(other.Path)
				s.objects = append(s.objects, x)
			}
		}
	}
}

// convertOther converts an object of another file. Its problems are reported there, apart from those that depend on the pods of this file.
func (s *stream) convertOther(x *object, convert func(*stream, *object)) {
	if x.kind == "Service" && len(s.selected(x.n.child("spec").child("selector"))) == 0 {
		return
	}
	before := len(s.problems)
	convert(s, x)
	if x.kind != "Service" {
		s.problems = s.problems[:before]
		return
	}
	for i := before; i < len(s.problems); i++ {
		s.problems[i].File = x.file
	}
}
