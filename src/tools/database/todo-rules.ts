/**
 * Rules for todos, enforced by triggers for every writer. A todo is claimed once, from `pending`, after its
 * dependencies are done. Every state can go back to `pending`. The script is idempotent and runs together with the
 * table definitions.
 *
 * A trigger runs inside the statement for each row, and SQLite has one writer. Of two concurrent claims, the second
 * finds the row taken.
 */
export const TODO_RULES = `
  CREATE TRIGGER IF NOT EXISTS todos_known_status_on_insert BEFORE INSERT ON todos
  WHEN NEW.status IS NULL OR NEW.status NOT IN ('pending', 'in_progress', 'done', 'blocked')
  BEGIN SELECT RAISE(ABORT, 'the status of a todo is pending, in_progress, done or blocked'); END;

  CREATE TRIGGER IF NOT EXISTS todos_known_status_on_update BEFORE UPDATE OF status ON todos
  WHEN NEW.status IS NULL OR NEW.status NOT IN ('pending', 'in_progress', 'done', 'blocked')
  BEGIN SELECT RAISE(ABORT, 'the status of a todo is pending, in_progress, done or blocked'); END;

  CREATE TRIGGER IF NOT EXISTS todos_claimed_once BEFORE UPDATE OF status ON todos
  WHEN NEW.status = 'in_progress' AND OLD.status = 'in_progress'
  BEGIN SELECT RAISE(ABORT, 'this todo is already claimed; claim another one that is pending'); END;

  CREATE TRIGGER IF NOT EXISTS todos_claimed_from_pending BEFORE UPDATE OF status ON todos
  WHEN NEW.status = 'in_progress' AND OLD.status IN ('done', 'blocked')
  BEGIN SELECT RAISE(ABORT, 'only a pending todo can be claimed; set it to pending first'); END;

  CREATE TRIGGER IF NOT EXISTS todos_claimed_when_ready BEFORE UPDATE OF status ON todos
  WHEN NEW.status = 'in_progress' AND OLD.status = 'pending' AND EXISTS (
    SELECT 1 FROM todo_deps d JOIN todos p ON p.id = d.depends_on WHERE d.todo_id = NEW.id AND p.status <> 'done')
  BEGIN SELECT RAISE(ABORT, 'this todo is not ready: one it depends on is not done'); END;

  CREATE TRIGGER IF NOT EXISTS todos_not_claimed_by_replacing BEFORE INSERT ON todos
  WHEN NEW.status = 'in_progress' AND EXISTS (SELECT 1 FROM todos WHERE id = NEW.id AND status <> 'pending')
  BEGIN SELECT RAISE(ABORT, 'a todo with this id is claimed or ended; claim another one that is pending'); END;
`;
