import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLWarning;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ThreadLocalRandom;

/**
 * The life of a reservation, from Java with JDBC.
 *
 * <pre>java -cp postgresql.jar Life.java SUBJECT</pre> connects by PGHOST, PGPORT, PGUSER, PGDATABASE.
 *
 * Every call may be repeated by the same ids; ask is all that a lost reply needs.
 * What it prints is explained in ../README.md.
 */
public class Life {

    // Of a call that ended so nothing is left, or nobody knows: repeat it by the same ids.
    static final Set<String> REPEAT = Set.of(
        "40001", "40P01", "55P03", "57014", "23505", "25006", "53300", "57P01", "57P02", "57P03");

    static final String RECEIPT = "SELECT outcome, dimension, state, replayed, reserved_units, actual_units, available,"
        + " limitledger.retry_after(retry_after_ms) AS retry_after FROM limitledger.";

    record Receipt(String outcome, String dimension, String state, boolean replayed,
                   Long reserved, Long actual, Long available, String retryAfter) {}

    record Answer(Receipt receipt, int tries) {}

    interface Call {
        Receipt on(Connection connection) throws SQLException;
    }

    /** Neither yes nor no: ask by the same ids later, or resolve_reservation. */
    static class NoAnswer extends Exception {
        NoAnswer(SQLException problem) {
            super("no answer", problem);
        }
    }

    private final String url;
    private final Properties properties = new Properties();
    private Connection connection;

    Life(Map<String, String> environment) {
        url = String.format("jdbc:postgresql://%s:%s/%s", environment.getOrDefault("PGHOST", "localhost"),
            environment.getOrDefault("PGPORT", "5432"), environment.getOrDefault("PGDATABASE", "postgres"));
        properties.setProperty("user", environment.getOrDefault("PGUSER", "postgres"));
        properties.setProperty("sslmode", environment.getOrDefault("PGSSLMODE", "prefer"));
        properties.setProperty("prepareThreshold", "0");  // behind a transaction pooler no statement stays prepared
        properties.setProperty("assumeMinServerVersion", "15");  // else it begins with a SET, for whoever comes next
        properties.setProperty("connectTimeout", "5");
        properties.setProperty("socketTimeout", "10");
    }

    /** Makes a call until its answer counts; returns it with the number of tries. */
    Answer ask(Call call, int most) throws SQLException, NoAnswer, InterruptedException {
        SQLException problem = null;
        for (int n = 1; n <= most; n++) {
            try {
                Connection connection = connected();
                connection.clearWarnings();
                Receipt receipt = call.on(connection);
                confirmed(connection.getWarnings());
                return new Answer(receipt, n);
            } catch (SQLException error) {
                disconnect();
                String state = error.getSQLState();
                boolean lost = state == null || state.startsWith("08");
                if (!lost && !REPEAT.contains(state)) {
                    throw error;
                }
                problem = error;
            }
            if (n < most) {
                // Full jitter: callers that failed together do not come back together.
                Thread.sleep(ThreadLocalRandom.current().nextLong(Math.min(2000L, 50L << (n - 1))));
            }
        }
        throw new NoAnswer(problem);
    }

    /** Takes WARNING 01000, committed here and not confirmed by the standby, for no answer. */
    static void confirmed(SQLWarning warning) throws SQLException {
        for (; warning != null; warning = warning.getNextWarning()) {
            if ("01000".equals(warning.getSQLState())) {
                throw new SQLException(warning.getMessage(), "08000", warning);
            }
        }
    }

    Connection connected() throws SQLException {
        if (connection == null) {
            connection = DriverManager.getConnection(url, properties);
        }
        return connection;
    }

    void disconnect() {
        try {
            if (connection != null) {
                connection.close();
            }
        } catch (SQLException ignored) {
            // it was broken
        }
        connection = null;
    }

    static Receipt query(Connection connection, String function, Object... arguments) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(RECEIPT + function)) {
            for (int i = 0; i < arguments.length; i++) {
                statement.setObject(i + 1, arguments[i]);  // a Long is sent as bigint, a String as text
            }
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                Receipt receipt = new Receipt(row.getString("outcome"), row.getString("dimension"),
                    row.getString("state"), row.getBoolean("replayed"),
                    row.getObject("reserved_units", Long.class), row.getObject("actual_units", Long.class),
                    row.getObject("available", Long.class), row.getString("retry_after"));
                confirmed(statement.getWarnings());  // in autocommit the COMMIT is the statement's
                return receipt;
            }
        }
    }

    static Call reserve(String subject, String reservation, long units, String request) {
        // An explicit transaction, as for a gateway that writes a row of its own along. The
        // receipt counts once commit has returned. After an error there is no rollback to
        // send, as the connection is closed.
        return connection -> {
            connection.setAutoCommit(false);
            Receipt receipt = query(connection,
                "reserve_capacity(?, 'chat', ?, ?, limitledger.request_digest(?::jsonb))",
                subject, reservation, units, request);
            connection.commit();
            connection.setAutoCommit(true);
            return receipt;
        };
    }

    static Call start(String subject, String reservation, String operation) {
        return connection -> query(connection, "start_reservation(?, ?, ?)", subject, reservation, operation);
    }

    static Call settle(String subject, String reservation, String operation, long actual) {
        return connection -> query(connection, "settle_usage(?, ?, ?, ?)", subject, reservation, operation, actual);
    }

    static Call release(String subject, String reservation) {
        return connection -> query(connection, "release_reservation(?, ?)", subject, reservation);
    }

    static Call resolve(String subject, String reservation, String request) {
        return connection -> query(connection,
            "resolve_reservation(?, ?, limitledger.request_digest(?::jsonb))", subject, reservation, request);
    }

    static void line(Object... cells) {
        System.out.printf("%-8s %-4s %5s  %-9s %-10s %-9s %-8s %8s %6s %9s %11s%n", cells);
    }

    static Receipt show(String step, String reservation, Answer answer) {
        Receipt receipt = answer.receipt();
        Object[] cells = {step, reservation, answer.tries(), receipt.outcome(), receipt.dimension(), receipt.state(),
            receipt.replayed() ? "yes" : "no", receipt.reserved(), receipt.actual(), receipt.available(),
            receipt.retryAfter()};
        for (int i = 0; i < cells.length; i++) {
            cells[i] = cells[i] == null ? "-" : cells[i];
        }
        line(cells);
        return receipt;
    }

    void live(String subject) throws Exception {
        line("step", "id", "tries", "outcome", "dimension", "state", "replayed",
            "reserved", "actual", "available", "retry-after");

        // Ids are chosen once per request of a client, a UUID say, and kept over all tries.
        // ACCEPTED alone is not enough: a late repeat may find that its hold has ended.
        Receipt receipt = show("reserve", "r-1", ask(reserve(subject, "r-1", 600, "{\"prompt\": \"hello\"}"), 8));
        if (!receipt.outcome().equals("ACCEPTED") || !receipt.state().equals("RESERVED")) {
            throw new IllegalStateException("r-1 holds nothing: do not go on");
        }

        // The executor's part. It runs nothing before this has been accepted.
        receipt = show("start", "r-1", ask(start(subject, "r-1", "op-1"), 8));
        if (!receipt.outcome().equals("ACCEPTED") || !receipt.state().equals("STARTED")) {
            throw new IllegalStateException("r-1 may not run");
        }
        show("settle", "r-1", ask(settle(subject, "r-1", "op-1", 200), 8));

        // A caller that can't wait tries once. Whether there was an answer or none, nothing
        // stays behind: resolve says what became of it, or fences the id, and release gives back.
        String request = "{\"prompt\": \"good morning\"}";
        try {
            show("reserve", "r-2", ask(reserve(subject, "r-2", 300, request), 1));
        } catch (NoAnswer none) {
            System.out.println("reserve  r-2      1  no answer");
        }
        show("resolve", "r-2", ask(resolve(subject, "r-2", request), 8));
        show("release", "r-2", ask(release(subject, "r-2"), 8));

        // A refusal is a result: 429 with Retry-After in seconds, and no retry from here.
        show("reserve", "r-3", ask(reserve(subject, "r-3", 1000, "{\"prompt\": \"long\"}"), 8));
    }

    public static void main(String[] arguments) throws Exception {
        Life life = new Life(System.getenv());
        try {
            life.live(arguments[0]);
        } finally {
            life.disconnect();
        }
    }
}
