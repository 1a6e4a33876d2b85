package spec

// Convert returns a pod file in TOML with the definition of a pod file or a manifest, in the long form of each field, or in the short one.
// Comments of TOML are kept. Fields that are ignored are left out. Relative paths stay as they are. The text is nil if one of the problems
// is an error.
func Convert(file string, data []byte, short bool) ([]byte, Problems) {
	var root *node
	pod, problems := parse(file, data, unsupported, Options{tree: &root})
	if pod == nil {
		return nil, problems
	}
	if short {
		shorten(root)
	}
	if formatOf(file, data) == formatTOML {
		attach(root, data)
	}
	return writeTOML(root), problems
}
