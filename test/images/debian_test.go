package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDebianImage runs examples/debian-image with a mmdebstrap that prints its arguments as the layer: the archive has the layout of docker
// save.
func TestDebianImage(t *testing.T) {
	for name, want := range map[string]string{
		"web": "localhost/web:latest", "shop/web:1": "localhost/shop/web:1", "localhost/web:1": "localhost/web:1",
		"registry.example.com/web:1": "registry.example.com/web:1", "host:5000/web": "host:5000/web:latest",
	} {
		dir := t.TempDir()
		for program, text := range map[string]string{
			"mmdebstrap": `#!/bin/sh` + "\n" + `for a; do case $a in */layer.tar) layer=$a ;; esac; done; printf '%s\n' "$@" >"$layer"`,
			"dpkg":       "#!/bin/sh\necho armhf",
		} {
			if err := os.WriteFile(filepath.Join(dir, program), []byte(text+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.CommandContext(t.Context(), "../../examples/debian-image", name, filepath.Join(dir, "out.tar"), "nginx-light", "curl")
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "MMDEBSTRAP_OPTIONS=--customize-hook='copy-in a /b'", "MIRROR=m")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if out, err := exec.CommandContext(t.Context(), "tar", "-C", dir, "-xf",
			filepath.Join(dir, "out.tar")).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var list []struct {
			Config           string
			RepoTags, Layers []string
		}
		var config struct {
			Architecture, Variant, OS string
			RootFS                    struct {
				Type    string
				DiffIDs []string `json:"diff_ids"`
			}
		}
		layer, err := os.ReadFile(filepath.Join(dir, "layer.tar"))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(layer)
		for file, v := range map[string]any{"manifest.json": &list, "config.json": &config} {
			text, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, v); err != nil {
				t.Fatalf("%s: %v: %s", file, err, text)
			}
		}
		if len(list) != 1 || !slices.Equal(list[0].RepoTags, []string{want}) || list[0].Config != "config.json" ||
			!slices.Equal(list[0].Layers, []string{"layer.tar"}) {
			t.Errorf("%s: images %+v, want %s", name, list, want)
		}
		platform, id := config.Architecture+config.Variant+config.OS, "sha256:"+hex.EncodeToString(sum[:])
		if platform != "armv7linux" || !slices.Equal(config.RootFS.DiffIDs, []string{id}) {
			t.Errorf("%s: configuration %+v", name, config)
		}
		arguments := strings.Split(string(layer), "\n")
		for _, want := range []string{"--include=nginx-light,curl", "--customize-hook=copy-in a /b", "bookworm", "m"} {
			if !slices.Contains(arguments, want) {
				t.Errorf("mmdebstrap was run with %q, want %q too", arguments, want)
			}
		}
	}
}
