package anthropic

import (
	"fmt"
	"testing"
)

// Pages of a list of models.
func TestModels(t *testing.T) {
	var models []Model
	for _, id := range []string{"a", "b", "c"} {
		models = append(models, NewModel(id, 1_700_000_000, 4096))
	}
	model := func(id string) string {
		return fmt.Sprintf(`{"type":"model","id":%q,"display_name":%q,"created_at":"2023-11-14T22:13:20Z","lifecycle":"active","max_input_tokens":4096,"max_tokens":4096}`, id, id)
	}
	if got := string(models[0].Body()); got != model("a") {
		t.Errorf("got %s", got)
	}
	cases := []struct {
		page Page
		want string
	}{
		{Page{}, `{"data":[` + model("a") + `,` + model("b") + `,` + model("c") + `],"has_more":false,"first_id":"a","last_id":"c"}`},
		{Page{Limit: "2"}, `{"data":[` + model("a") + `,` + model("b") + `],"has_more":true,"first_id":"a","last_id":"b"}`},
		{Page{Limit: "2", After: "b"}, `{"data":[` + model("c") + `],"has_more":false,"first_id":"c","last_id":"c"}`},
		{Page{Limit: "2", After: "c"}, `{"data":[],"has_more":false,"first_id":null,"last_id":null}`},
		{Page{Limit: "1", Before: "c"}, `{"data":[` + model("b") + `],"has_more":true,"first_id":"b","last_id":"b"}`},
		{Page{Limit: "9", After: "x"}, `{"data":[],"has_more":false,"first_id":null,"last_id":null}`},
	}
	for _, c := range cases {
		if got, err := ModelsBody(models, c.page); err != nil || string(got) != c.want {
			t.Errorf("%+v:\n got %s, %v\nwant %s", c.page, got, err, c.want)
		}
	}
	for _, limit := range []string{"0", "1001", "-1", "1.5", "x"} {
		if _, err := ModelsBody(models, Page{Limit: limit}); err == nil {
			t.Errorf("a limit of %s is taken", limit)
		}
	}
	if got := string(CountBody(7)); got != `{"input_tokens":7}` {
		t.Errorf("got %s", got)
	}
}
