package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/podstead/podstead/internal/config"
)

// settingsOfHints are what hints say to write into podstead.toml, by a part of the hint.
var settingsOfHints = map[string]string{
	"write a notifier as [[notify]] with name": "[[notify]]\nname = \"ops\"\ncommand = [\"/bin/true\"]\n[[notify]]\nname = \"chat\"\n" +
		"url = \"https://alerts.example.com/podstead\"\n",
	"write a rule as [[images.verify]] with prefix":          "[[images.verify]]\nprefix = \"registry.example.com/shop\"\nkeys = [\"KEY\"]\n",
	"or set another OCI runtime as runtime in [engine]":      "[engine]\nruntime = \"crun\"\n",
	"set engine.runtime in podstead.toml":                    "engine.runtime = \"crun\"\n",
	"set runDir to a directory in memory":                    "runDir = \"/run/podstead\"\n",
	"or add the directory to hostPaths in [policy]":          "[policy]\nhostPaths = [\"/srv\"]\n",
	"from hostPaths in [policy]":                             "[policy]\nhostPaths = [\"/srv\"]\n",
	"set reboot.maxPerDay in podstead.toml":                  "reboot.maxPerDay = 2\n",
	"unless [network] names subnets":                         "[network]\nsubnets = \"10.99.0.0/22\"\n",
	"set mode = \"bridge\" of [network] in podstead.toml":    "[network]\nmode = \"bridge\"\n",
	"containerLog in podstead.toml":                          "containerLog.driver = \"journald\"\n",
	"set pods.pidsLimit in podstead.toml":                    "pods.pidsLimit = 100\n",
	"set pods.finishedPodTTL in podstead.toml":               "pods.finishedPodTTL = \"1h\"\n",
	"to allowedUnsafeSysctls in [policy] of podstead.toml":   "[policy]\nallowedUnsafeSysctls = [\"kernel.msgmax\"]\n",
	"or podSecurity in [policy] of podstead.toml":            "[policy]\npodSecurity = \"privileged\"\n",
	"set requests = \"ignore\" in [policy] of podstead.toml": "[policy]\nrequests = \"ignore\"\n",
	"or change images.verify in podstead.toml":               "[[images.verify]]\nprefix = \"registry.example.com/shop\"\nkeys = [\"KEY\"]\n",
}

// namesSetting matches hints to settings.
var namesSetting = regexp.MustCompile(`podstead\.toml|\[(policy|network|engine|images\.verify|notify)\]|\brunDir\b`)

// TestHintsOfSettings writes what the hints in the sources say about settings into podstead.toml, which is valid with it.
func TestHintsOfSettings(t *testing.T) {
	var hints []string
	for _, h := range scanHints(t).hints {
		if namesSetting.MatchString(h.text) {
			hints = append(hints, h.text)
		}
	}
	key := filepath.Join(t.TempDir(), "shop.pub")
	for part, text := range settingsOfHints {
		if !slices.ContainsFunc(hints, func(hint string) bool { return strings.Contains(hint, part) }) {
			t.Errorf("no hint has %q", part)
		}
		file := filepath.Join(t.TempDir(), "podstead.toml")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "KEY", key)), 0o600); err != nil {
			t.Fatal(err)
		}
		unset := func(string) (string, bool) { return "", false }
		if _, err := config.Load(config.Sources{File: file, Env: unset, Flag: unset}); err != nil {
			t.Errorf("hint %q: %v\n%s", part, err, text)
		}
	}
	for _, hint := range hints {
		follows := func(part string) bool { return strings.Contains(hint, part) }
		if !slices.ContainsFunc(slices.Collect(maps.Keys(settingsOfHints)), follows) {
			t.Errorf("hint %q is not followed: add what it says to settingsOfHints", hint)
		}
	}
}
