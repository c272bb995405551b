package price

import (
	"fmt"
	"slices"
	"strings"
)

// Volumes lays the ways to what was wished for side by side, with what must be read with them.
type Volumes struct {
	Options   []Option  `json:"options"`
	Refused   []Refusal `json:"refused"`
	Notes     []string  `json:"notes"`
	Catalogue string    `json:"catalogue"` // its date
}

// VolumesFor finds the ways, of any machine or of one and its provider, and says where it has none at all.
func (c Catalogue) VolumesFor(w Wish, m *Machine) (Volumes, error) {
	v := Volumes{Options: []Option{}, Refused: []Refusal{}, Notes: w.notes(), Catalogue: c.Date}
	options, refused := c.Ways(w, m)
	v.Options, v.Refused = append(v.Options, options...), append(v.Refused, refused...)
	if m != nil && len(options)+len(refused) == 0 {
		return v, fmt.Errorf("--instance %s: the catalogue has no volumes of %s", m.Name, m.Provider)
	}
	return v, nil
}

// OnlyOf leaves the volumes of one provider; "" leaves all.
func (c Catalogue) OnlyOf(provider string) (Catalogue, error) {
	if provider == "" {
		return c, nil
	}
	var own []Volume
	var known []string
	for _, v := range c.Volumes {
		if strings.EqualFold(v.Provider, provider) {
			own = append(own, v)
		}
		if !slices.Contains(known, v.Provider) {
			known = append(known, v.Provider)
		}
	}
	if len(own) == 0 {
		return c, fmt.Errorf("--provider %s: the catalogue has volumes of %s", provider, strings.Join(known, ", "))
	}
	c.Volumes = own
	return c, nil
}

// notes says what must be read with the ways.
func (w Wish) notes() []string {
	notes := []string{
		"a stripe has no redundancy: it is lost with any one of its volumes",
		"US$ without VAT and discounts; bursts are not counted; ? marks what the catalogue calls uncertain",
	}
	if w.Bandwidth == 0 {
		const page = 16 << 10
		notes = append(notes, fmt.Sprintf("%.0f IOPS of 16 KiB pages are %.0f MiB/s: where the bandwidth that comes with a volume is less, ask for it with --bandwidth", w.IOPS, w.IOPS*page/(1<<20)))
	}
	return notes
}
