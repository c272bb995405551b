package cli

import "github.com/spf13/cobra"

func (a *app) catalogueCommand(shared *priceFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "catalogue",
		Short: "List the machines and volumes with their prices, sources and dates",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			c, err := prices(shared.catalogue)
			if err != nil {
				return err
			}
			if shared.json {
				return a.printJSON(c)
			}
			return a.fit(c.Text)
		},
	}
}
