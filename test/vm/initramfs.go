package vm

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// loadOrder returns the files of the modules and of those that they need, needed ones first. A line of modules.dep is "file: file…",
// with the needed modules in reverse load order.
func loadOrder(modulesDep string, names []string) ([]string, error) {
	needs := map[string][]string{}
	files := map[string]string{}
	for line := range strings.Lines(modulesDep) {
		file, list, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		needs[file] = strings.Fields(list)
		files[strings.TrimSuffix(filepath.Base(file), ".ko")] = file
	}
	var order []string
	for _, name := range names {
		file, ok := files[name]
		if !ok {
			return nil, fmt.Errorf("find kernel module %s: the kernel has none", name)
		}
		before := slices.Clone(needs[file])
		slices.Reverse(before)
		for _, f := range append(before, file) {
			if !slices.Contains(order, f) {
				order = append(order, f)
			}
		}
	}
	return order, nil
}

// archive is a cpio archive of the format "newc", which the kernel unpacks as its initial root file system.
type archive struct {
	bytes.Buffer
	entries int
}

const (
	modeDir  = 0o040755
	modeFile = 0o100755
)

// add appends a file or a directory.
func (a *archive) add(name string, mode int, content []byte) {
	a.entries++
	if name == trailer {
		a.entries = 0
	}
	// magic, inode, mode, uid, gid, links, time, size, device (2), device node (2), length of the name with its NUL, checksum
	fmt.Fprintf(a, "070701%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X%08X",
		a.entries, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name)+1, 0)
	a.WriteString(name + "\x00")
	a.pad()
	a.Write(content)
	a.pad()
}

// trailer is the name of the entry that ends an archive.
const trailer = "TRAILER!!!"

func (a *archive) pad() { a.Write(make([]byte, -a.Len()&3)) }

// writeInitramfs writes an initramfs with the agent as its init, and the modules.
func writeInitramfs(path, agent string, modules []string) error {
	var a archive
	program, err := os.ReadFile(agent)
	if err != nil {
		return err
	}
	a.add("init", modeFile, program)
	a.add("modules", modeDir, nil)
	for _, m := range modules {
		content, err := os.ReadFile(m)
		if err != nil {
			return err
		}
		a.add("modules/"+filepath.Base(m), modeFile, content)
	}
	a.add(trailer, 0, nil)
	return os.WriteFile(path, a.Bytes(), 0o600)
}
