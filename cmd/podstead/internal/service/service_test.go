package service_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/podstead/podstead/cmd/podstead/internal/service"
)

func TestAtBoot(t *testing.T) {
	const unit, link = "usr/lib/systemd/system/podstead.service", "etc/systemd/system/multi-user.target.wants/podstead.service"
	for name, test := range map[string]struct {
		files []string
		want  service.State
	}{
		"no units":                             {nil, service.Missing},
		"unit without link":                    {[]string{unit}, service.Disabled},
		"unit of the administrator":            {[]string{"etc/systemd/system/podstead.service"}, service.Disabled},
		"unit with link":                       {[]string{unit, link}, service.Enabled},
		"unit with link of the vendor":         {[]string{unit, "usr/lib/systemd/system/edge.target.requires/podstead.service"}, service.Enabled},
		"link of another unit":                 {[]string{"etc/systemd/system/multi-user.target.wants/podstead-tools.service"}, service.Missing},
		"unit of make install with PREFIX set": {[]string{"usr/local/lib/systemd/system/podstead.service"}, service.Disabled},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, file := range test.files {
				path := filepath.Join(root, file)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := service.AtBoot(root); got != test.want {
				t.Errorf("state %v, want %v", got, test.want)
			}
		})
	}
}
