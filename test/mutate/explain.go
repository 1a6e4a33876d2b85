package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
)

// readExplanations reads the explanations of survivors from a file, by key. Each line that begins with "- `" is one:
//
//   - `n < 2 → n <= 2`: there are never two
//
// It explains every survivor of this kind, wherever the code is: functions can be split, and files renamed.
//
// All other lines are ignored. If file is empty, there are no explanations.
func readExplanations(file string) (map[string]string, error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	reasons := map[string]string{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line, ok := strings.CutPrefix(lines.Text(), "- `")
		if !ok {
			continue
		}
		key, reason, ok := strings.Cut(line, "`: ")
		if _, twice := reasons[key]; !ok || twice || strings.TrimSpace(reason) == "" {
			return nil, fmt.Errorf("%s:%d: must be one line \"- `key`: reason\" per key", file, n)
		}
		reasons[key] = reason
	}
	return reasons, lines.Err()
}

// staleKeys returns the keys of explanations without a mutant, sorted.
func staleKeys(reasons map[string]string, mutants []mutant) []string {
	stale := make(map[string]bool, len(reasons))
	for key := range reasons {
		stale[key] = true
	}
	for _, m := range mutants {
		delete(stale, m.key)
	}
	keys := make([]string, 0, len(stale))
	for key := range stale {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
