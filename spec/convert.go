package spec

import "bytes"

// Convert returns a pod file in TOML with the definitions of a pod file or of manifests, in the long form of each field, or in the short
// one. Comments of TOML and YAML are kept. Fields that are ignored are left out. Relative paths stay as they are. The text is nil if one of
// the problems is an error.
func (o Options) Convert(file string, data []byte, short bool) ([]byte, Problems) {
	parts, problems := o.ParseParts(file, data)
	if len(problems.Errors()) > 0 {
		return nil, problems
	}
	whole := newTable(nil)
	for i := range parts {
		whole.appendItem(parts[i].root)
		if short {
			shorten(parts[i].root)
		}
	}
	switch parts[0].format {
	case formatTOML:
		attach(whole, data, commentsOf(data))
	case formatYAML:
		attach(whole, withoutMarks(data), commentsOfYAML(data))
	case formatJSON: // has none
	}
	if len(parts) == 1 {
		parts[0].root.after = whole.after
		return writeTOML(parts[0].root), problems
	}
	return writePods(whole), problems
}

// FromOutput returns a pod file in TOML with the pods of an object in JSON as podstead get prints it: a Pod or a list of them. It is not
// checked: get omits the values of secrets.
func FromOutput(object []byte) ([]byte, error) {
	sources, problems, err := readSources(formatJSON, object, &Options{})
	if err == nil && len(problems.Errors()) > 0 {
		err = problems.Errors()
	}
	if err != nil {
		return nil, err
	}
	whole := newTable(nil)
	for i := range sources {
		if root := sources[i].root; len(items(root.child("annotations"))) == 0 { // all were those of get
			root.remove("annotations")
		}
		whole.appendItem(sources[i].root)
	}
	if len(sources) == 1 {
		return writeTOML(sources[0].root), nil
	}
	return writePods(whole), nil
}

// writePods returns the text of a file with several pods.
func writePods(whole *node) []byte {
	w := &writer{}
	for _, pod := range whole.items {
		w.header(pod, podsKey)
		w.pod(pod, podsKey+".")
	}
	for _, c := range whole.after {
		w.comment(c)
	}
	return bytes.TrimLeft([]byte(w.b.String()), "\n")
}
