package config_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestRuntimeClasses(t *testing.T) {
	c, err := load(t, `[[engine.runtimeClasses]]
name = "untrusted"
runtime = "/usr/local/bin/runsc"
[[engine.runtimeClasses]]
name = "crun.example"
runtime = "crun"
`, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"untrusted": "/usr/local/bin/runsc", "crun.example": "crun"}
	if got := c.Engine.Classes(); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	empty, err := load(t, "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	merged, changed, restart := empty.Reload(c)
	if !maps.Equal(merged.Engine.Classes(), want) || !slices.Equal(changed, []string{"engine.runtimeClasses"}) || len(restart) > 0 {
		t.Errorf("%v, changed %v, needs a restart: %v", merged.Engine.Classes(), changed, restart)
	}
	if _, changed, _ := merged.Reload(c); len(changed) > 0 {
		t.Errorf("%v changes again", changed)
	}
}

func TestInvalidRuntimeClasses(t *testing.T) {
	const ok = "name = \"a\"\nruntime = \"crun\"\n"
	for text, want := range map[string]string{
		"runtime = \"crun\"":                      "1:10: engine.runtimeClasses[0]: name: Required value",
		"name = \"a\"":                            "1:10: engine.runtimeClasses[0]: runtime: Required value",
		"name = \"A_\"\nruntime = \"crun\"":       `engine.runtimeClasses[0].name: "A_": must consist of lower case letters`,
		"name = \"a\"\nruntime = \"./crun\"":      "engine.runtimeClasses[0].runtime: must be the name of a program or an absolute path",
		"name = \"a\"\nruntime = \"auto\"":        `engine.runtimeClasses[0].runtime: "auto": must be the name of a program`,
		ok + "[[engine.runtimeClasses]]\n" + ok:   `engine.runtimeClasses[1].name: "a": another class has this name`,
		ok + "handler = \"crun\"\n":               "engine.runtimeClasses[0].handler: unknown field",
		ok + "overhead = { memory = \"32Mi\" }\n": "engine.runtimeClasses[0].overhead: unknown field",
	} {
		if _, err := load(t, "[[engine.runtimeClasses]]\n"+text, nil, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v, want %q", text, err, want)
		}
	}
}
