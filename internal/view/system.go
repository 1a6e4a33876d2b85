package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/podstead/podstead/api"
)

// diskTypes are the names of the kinds of data for people.
var diskTypes = map[string]string{
	"images": "Images", "layers": "Image layers", "containers": "Writable layers", "volumes": "Persistent volumes",
	"podVolumes": "Pod volumes",
	"logs":       "Logs", "state": "State", "journal": "Journal",
}

// DiskUsageTable returns the rows of the kinds of data on the disk.
func DiskUsageTable(u *api.DiskUsage) [][]string {
	rows := [][]string{{"TYPE", "TOTAL", "ACTIVE", "SIZE", "RECLAIMABLE"}}
	for _, item := range u.Items {
		row := []string{cmp.Or(diskTypes[item.Type], item.Type), "", "", Size(item.Size), ""}
		if item.Type != "state" && item.Type != "journal" {
			row[1], row[2] = strconv.Itoa(item.Total), strconv.Itoa(item.Active)
			row[4] = Size(item.Reclaimable)
			if item.Size > 0 {
				row[4] += fmt.Sprintf(" (%d%%)", item.Reclaimable*100/item.Size)
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// FilesystemLine describes the file system of the state directory.
func FilesystemLine(f *api.Filesystem) string {
	line := fmt.Sprintf("File system of %s: %s of %s used", f.Path, Size(f.Used), Size(f.Size))
	if f.Size > 0 {
		line += fmt.Sprintf(" (%d%%)", f.Used*100/f.Size)
	}
	if f.Inodes > 0 {
		line += fmt.Sprintf(", %d%% of the inodes", f.InodesUsed*100/f.Inodes)
	}
	if f.HighPercent >= 100 {
		return line + ". Unused images are not removed."
	}
	return line + fmt.Sprintf(". Unused images are removed from %d%% on.", f.HighPercent)
}

// ImageUsageTable returns the rows of the images.
func ImageUsageTable(list []api.ImageUsage) [][]string {
	rows := [][]string{{"IMAGE", "SIZE", "SHARED", "UNIQUE", "UNUSED FOR", "KEPT"}}
	for n := range list {
		i := &list[n]
		var kept []string
		if i.Used {
			kept = append(kept, "in use")
		}
		if i.Requested {
			kept = append(kept, "requested by hand")
		}
		unused := Age(time.Duration(i.Unused) * time.Second)
		if i.Used {
			unused = "<none>"
		}
		rows = append(rows, []string{
			strings.Join(i.Names, ","), Size(i.Size), Size(i.Shared), Size(i.Size - i.Shared), unused,
			cmp.Or(strings.Join(kept, ", "), "<none>"),
		})
	}
	return rows
}

// ContainerUsageTable returns the rows of the writable layers. Those of the runs of one container are one row.
func ContainerUsageTable(list []api.ContainerUsage) [][]string {
	var containers []api.ContainerUsage
	for _, run := range list {
		same := func(c api.ContainerUsage) bool {
			return c.Pod == run.Pod && c.Container == run.Container && c.Active == run.Active
		}
		if i := slices.IndexFunc(containers, same); i >= 0 {
			containers[i].Size += run.Size
		} else {
			containers = append(containers, run)
		}
	}
	rows := [][]string{{"POD", "CONTAINER", "WRITABLE LAYERS", "ACTIVE"}}
	for n := range containers {
		c := &containers[n]
		rows = append(rows, []string{c.Pod, c.Container, Size(c.Size), strconv.FormatBool(c.Active)})
	}
	return rows
}

// VolumeUsageTable returns the rows of the persistent volumes.
func VolumeUsageTable(list []api.VolumeUsage) [][]string {
	rows := [][]string{{"PERSISTENT VOLUME", "SIZE", "PODS"}}
	for n := range list {
		v := &list[n]
		rows = append(rows, []string{v.Name, Size(v.Size), cmp.Or(strings.Join(v.Pods, ","), "<none>")})
	}
	return rows
}
