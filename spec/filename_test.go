package spec

import (
	"strings"
	"testing"
)

// TestFileName checks that names of files are unique, and short enough for an extension.
func TestFileName(t *testing.T) {
	long := strings.Repeat("a", 252)
	seen := map[string]string{}
	for _, pod := range []string{
		"web", "web.v1", "web.json", strings.Repeat("a", maxFileName), strings.Repeat("a", maxFileName+1), long + "b", long + "c",
	} {
		name := FileName(pod)
		if len(name) > maxFileName || seen[name] != "" || len(pod) <= maxFileName && name != pod {
			t.Errorf("%s: file name %s of %d bytes, taken by %q", pod, name, len(name), seen[name])
		}
		seen[name] = pod
	}
}

// TestPodNames checks that the name of a pod is a DNS subdomain.
func TestPodNames(t *testing.T) {
	for name, valid := range map[string]bool{
		"web.v1": true, strings.Repeat("a", 253): true, strings.Repeat("a", 254): false, "a..b": false, ".a": false, "a.": false,
		"A": false, "a/b": false,
	} {
		if pod, problems := Parse("file.toml", []byte("name = \""+name+"\"\n"+podTail)); (pod != nil) != valid {
			t.Errorf("%s: %v, want valid: %v", name, problems, valid)
		}
		if pod, problems := Parse(name+".toml", []byte(podTail)); !strings.Contains(name, "/") && (pod != nil) != valid {
			t.Errorf("the file %s.toml: %v, want valid: %v", name, problems, valid)
		}
	}
	if pod, problems := Parse("web.toml", []byte("waitFor = [\"pod:db.v1:ready\"]\n"+podTail)); pod == nil || len(problems) > 0 {
		t.Errorf("waitFor: %v, %v", pod, problems)
	}
}
